"""Event deliveries that are retried."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the table."""
    run_sql("up/0007_event_deliveries.sql")


def downgrade() -> None:
    """Drop it with all pending deliveries."""
    run_sql("down/0007_event_deliveries.sql")
