"""What a round's weak learner meets of the weak-learning conditions, where a job asks for that

Revision: 0004_conditions, after 0003_keys_and_runners
"""

import sqlalchemy as sa
from alembic import op

revision = "0004_conditions"
down_revision = "0003_keys_and_runners"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rounds", sa.Column("conditions", sa.JSON()))


def downgrade() -> None:
    op.drop_column("rounds", "conditions")
