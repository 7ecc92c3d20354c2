"""A worker's row tells which templates it cannot read."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the column."""
    run_sql("up/0012_unreadable_templates.sql")


def downgrade() -> None:
    """Drop it: such a refusal is a missing handler again."""
    run_sql("down/0012_unreadable_templates.sql")
