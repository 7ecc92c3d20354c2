"""Audit log of operator actions over HTTP."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the table."""
    run_sql("up/0004_operator_actions.sql")


def downgrade() -> None:
    """Drop it; task histories and the log of pauses still record the actors."""
    run_sql("down/0004_operator_actions.sql")
