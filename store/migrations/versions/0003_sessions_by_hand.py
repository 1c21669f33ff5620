"""Sessions by hand"""

from alembic import op
import sqlalchemy as sa

revision = '0003'
down_revision = '0002'


def upgrade() -> None:
    op.add_column('sessions', sa.Column('error', sa.String(), nullable=True))
    op.add_column('sessions', sa.Column('tools', sa.JSON(none_as_null=True), nullable=False, server_default='[]'))
