"""Boots of the machine, deadlines of jobs"""

from alembic import op
import sqlalchemy as sa

revision = '0004'
down_revision = '0003'


def upgrade() -> None:
    op.add_column('boots', sa.Column('machine_boot_id', sa.String(), nullable=True))
    op.add_column('cron_jobs', sa.Column('expect_within_secs', sa.Integer(), nullable=True))
