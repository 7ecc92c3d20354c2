"""Total number of dead letters and their waiting times."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Create the table."""
    run_sql("up/0014_dead_letter_counters.sql")


def downgrade() -> None:
    """Drop it with its counters."""
    run_sql("down/0014_dead_letter_counters.sql")
