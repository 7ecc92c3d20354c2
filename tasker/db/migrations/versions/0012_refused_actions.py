"""Reason why an operator action was refused."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the column."""
    run_sql("up/0012_refused_actions.sql")


def downgrade() -> None:
    """Drop it with the recorded reasons."""
    run_sql("down/0012_refused_actions.sql")
