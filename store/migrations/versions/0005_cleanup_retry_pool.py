"""Cleanup, exit codes that are tried again, pools; logs cut short; zones at each boot"""

from alembic import op
import sqlalchemy as sa

revision = '0005'
down_revision = '0004'


def upgrade() -> None:
    op.add_column('cron_jobs', sa.Column('cleanup_command', sa.String(), nullable=True))
    op.add_column('cron_jobs', sa.Column('retry_on', sa.JSON(), nullable=False, server_default='[]'))
    op.add_column('cron_jobs', sa.Column('pool', sa.String(), nullable=True))
    op.add_column('cron_runs', sa.Column('log_cut', sa.Boolean(), nullable=False, server_default='0'))
    op.add_column('boots', sa.Column('tzdata', sa.String(), nullable=True))
    op.add_column('boots', sa.Column('local_zone', sa.String(), nullable=True))
