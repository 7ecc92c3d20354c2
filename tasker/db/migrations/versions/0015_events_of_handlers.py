"""Events that handlers publish themselves."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the column."""
    run_sql("up/0015_events_of_handlers.sql")


def downgrade() -> None:
    """Drop it with the events that it distinguishes."""
    run_sql("down/0015_events_of_handlers.sql")
