"""Where a round's time went, where a job asks for that, and what a run does before its first round

Revision: 0006_stages, after 0005_scheduling
"""

import sqlalchemy as sa
from alembic import op

revision = "0006_stages"
down_revision = "0005_scheduling"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rounds", sa.Column("stages", sa.JSON()))
    op.add_column("jobs", sa.Column("phase", sa.String(16)))


def downgrade() -> None:
    op.drop_column("jobs", "phase")
    op.drop_column("rounds", "stages")
