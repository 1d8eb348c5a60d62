"""API keys; what runners tell of themselves, with their totals

Revision: 0003_keys_and_runners, after 0002_lost_runs
"""

import sqlalchemy as sa
from alembic import op

revision = "0003_keys_and_runners"
down_revision = "0002_lost_runs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(length=12), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("secret_sha256", sa.String(length=64), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "runners",
        sa.Column("owner", sa.String(length=200), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("trouble", sa.Text()),
        sa.Column("workers", sa.Integer(), nullable=False),
        sa.Column("rounds", sa.BigInteger(), nullable=False),
        sa.Column("round_seconds", sa.Double(), nullable=False),
        sa.Column("reduction_seconds", sa.Double(), nullable=False),
        sa.Column("reduction_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner"),
    )


def downgrade() -> None:
    op.drop_table("runners")
    op.drop_table("api_keys")
