"""How many dead letters there ever were, and how long they waited."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add the table."""
    run_sql("up/0014_dead_letter_counters.sql")


def downgrade() -> None:
    """Drop it, with what counts into it."""
    run_sql("down/0014_dead_letter_counters.sql")
