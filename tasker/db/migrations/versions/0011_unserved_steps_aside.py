"""Ready steps that nobody serves wait beside the others."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the mark, and an index that knows it."""
    run_sql("up/0011_unserved_steps_aside.sql")


def downgrade() -> None:
    """Drop both: the steps wait for room again."""
    run_sql("down/0011_unserved_steps_aside.sql")
