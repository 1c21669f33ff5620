"""Approvals of runs"""

from alembic import op
import sqlalchemy as sa

import store.types

revision = '0002'
down_revision = '0001'


def upgrade() -> None:
    op.add_column('cron_runs', sa.Column('approval_expires_at', store.types.UtcDateTime(length=24), nullable=True))
