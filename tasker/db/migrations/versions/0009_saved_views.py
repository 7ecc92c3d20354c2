"""Saved views: lists of tasks stored under a name."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Create the table."""
    run_sql("up/0009_saved_views.sql")


def downgrade() -> None:
    """Drop it with all saved views."""
    run_sql("down/0009_saved_views.sql")
