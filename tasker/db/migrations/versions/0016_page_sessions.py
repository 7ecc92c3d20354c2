"""Sessions of the web page."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Add the table."""
    run_sql("up/0016_page_sessions.sql")


def downgrade() -> None:
    """Drop it: everybody signs in again."""
    run_sql("down/0016_page_sessions.sql")
