"""Dead letters: tasks that need a person."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the tables, and the columns that the search for stale tasks reads."""
    run_sql("up/0002_dead_letters.sql")


def downgrade() -> None:
    """Drop them; what was recorded is gone."""
    run_sql("down/0002_dead_letters.sql")
