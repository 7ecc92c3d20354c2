"""Log lines and progress reported by running handlers."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the tables."""
    run_sql("up/0006_step_reports.sql")


def downgrade() -> None:
    """Drop them with all stored lines."""
    run_sql("down/0006_step_reports.sql")
