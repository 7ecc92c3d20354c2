"""Templates that a worker cannot read, recorded in the worker's row."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the column."""
    run_sql("up/0013_unreadable_templates.sql")


def downgrade() -> None:
    """Drop it: such a refusal counts as a missing handler again."""
    run_sql("down/0013_unreadable_templates.sql")
