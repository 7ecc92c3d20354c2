"""All tables."""

from __future__ import annotations

from alembic import op

from tasker.db.migrations.run_sql import run_sql

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    run_sql("0001_initial.sql")


def downgrade() -> None:
    """Drop the whole schema; Alembic's own table is moved away meanwhile, because Alembic writes to it afterwards."""
    op.execute("create schema tasker_aside")
    op.execute("alter table tasker.alembic_version set schema tasker_aside")
    op.execute("drop schema tasker cascade")
    op.execute("create schema tasker")
    op.execute("alter table tasker_aside.alembic_version set schema tasker")
    op.execute("drop schema tasker_aside")
