"""How often a job's runner died without a further round.

Revision: 0002_lost_runs, after 0001
"""

import sqlalchemy as sa
from alembic import op

revision = "0002_lost_runs"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("lost_runs", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("jobs", sa.Column("most_rounds", sa.BigInteger(), nullable=False, server_default="0"))
