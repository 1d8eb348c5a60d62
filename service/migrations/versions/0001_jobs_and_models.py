"""Jobs with their transitions and rounds; models and their versions.

Revision: 0001, the first
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_jobs()
    create_transitions()
    create_rounds()
    create_models()


def create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("idempotency_key", sa.String(length=200)),
        sa.Column("body_hash", sa.String(length=64), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("rounds", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("rounds_done", sa.BigInteger(), nullable=False),
        sa.Column("workers", sa.Integer()),
        sa.Column("lease_owner", sa.String(length=200)),
        sa.Column("lease_expires", sa.DateTime(timezone=True)),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True)),
        sa.Column("running_at", sa.DateTime(timezone=True)),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("answer", sa.JSON(none_as_null=True)),
        sa.Column("model_name", sa.String(length=100)),
        sa.Column("model_version", sa.Integer()),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("id"),
        sa.UniqueConstraint("idempotency_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_jobs_state_number", "jobs", ["state", "number"])


def create_transitions() -> None:
    op.create_table(
        "job_transitions",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("number"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_job_transitions_job_id", "job_transitions", ["job_id"])


def create_rounds() -> None:
    op.create_table(
        "rounds",
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("round", sa.BigInteger(), nullable=False),
        sa.Column("edge", sa.Double()),
        sa.Column("alpha", sa.Double()),
        sa.Column("loss", sa.Double()),
        sa.Column("ln_loss", sa.Double()),
        sa.Column("bound", sa.Double()),
        sa.Column("ln_bound", sa.Double()),
        sa.Column("error_bound", sa.Double()),
        sa.Column("train_error", sa.Double()),
        sa.Column("strict_train_error", sa.Double()),
        sa.Column("valid_error", sa.Double()),
        sa.Column("n_leaves", sa.Integer(), nullable=False),
        sa.Column("bytes_reduced", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "run", "round"),
    )


def create_models() -> None:
    op.create_table(
        "models",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("next_version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "model_versions",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("artifact", sa.String(length=200), nullable=False),
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["name"], ["models.name"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("name", "version"),
    )


def downgrade() -> None:
    op.drop_table("rounds")
    op.drop_table("model_versions")
    op.drop_table("job_transitions")
    op.drop_table("models")
    op.drop_table("jobs")
