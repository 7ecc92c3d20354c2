"""Events that steps publish."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the tables."""
    run_sql("0005_domain_events.up.sql")


def downgrade() -> None:
    """Drop them, with every event that is kept."""
    run_sql("0005_domain_events.down.sql")
