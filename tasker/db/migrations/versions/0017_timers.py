"""Timers of steps."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Add the timers, with those of steps that wait for a retry."""
    run_sql("up/0017_timers.sql")


def downgrade() -> None:
    """Drop them: steps have the times of their retries."""
    run_sql("down/0017_timers.sql")
