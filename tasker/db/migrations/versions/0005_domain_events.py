"""Events that steps publish."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the tables."""
    run_sql("up/0005_domain_events.sql")


def downgrade() -> None:
    """Drop them, with every event that is kept."""
    run_sql("down/0005_domain_events.sql")
