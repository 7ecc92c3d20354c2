"""Trace context of a task's submission."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the column."""
    run_sql("up/0008_trace_context.sql")


def downgrade() -> None:
    """Drop it with the trace contexts of all tasks."""
    run_sql("down/0008_trace_context.sql")
