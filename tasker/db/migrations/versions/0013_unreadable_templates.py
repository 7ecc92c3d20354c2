"""A worker's row tells which templates it cannot read."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the column."""
    run_sql("up/0013_unreadable_templates.sql")


def downgrade() -> None:
    """Drop it: such a refusal is a missing handler again."""
    run_sql("down/0013_unreadable_templates.sql")
