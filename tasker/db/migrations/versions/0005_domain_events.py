"""Events published by steps."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the tables."""
    run_sql("up/0005_domain_events.sql")


def downgrade() -> None:
    """Drop them with all stored events."""
    run_sql("down/0005_domain_events.sql")
