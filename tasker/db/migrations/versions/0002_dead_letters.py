"""Dead letters: tasks that need an operator."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the tables, and the columns read by the search for stale tasks."""
    run_sql("up/0002_dead_letters.sql")


def downgrade() -> None:
    """Drop them; recorded dead letters are lost."""
    run_sql("down/0002_dead_letters.sql")
