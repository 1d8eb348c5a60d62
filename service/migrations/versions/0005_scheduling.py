"""What placing jobs on workers needs: priority, workers asked for, memory; what runners can offer

Revision: 0005_scheduling, after 0004_conditions
"""

import sqlalchemy as sa
from alembic import op

revision = "0005_scheduling"
down_revision = "0004_conditions"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("priority", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("jobs", sa.Column("wanted_workers", sa.Integer()))
    op.add_column("jobs", sa.Column("member_bytes", sa.BigInteger()))
    op.add_column("jobs", sa.Column("row_bytes", sa.BigInteger()))
    op.add_column("jobs", sa.Column("queued_at", sa.DateTime(timezone=True)))
    op.add_column("jobs", sa.Column("place", sa.JSON()))
    op.add_column("runners", sa.Column("worker_bytes", sa.JSON(), nullable=False, server_default="[]"))
    op.add_column("runners", sa.Column("own_bytes", sa.BigInteger(), nullable=False, server_default="0"))
