"""Unserved ready steps kept separate from the others."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the marker column and an index that includes it."""
    run_sql("up/0011_unserved_steps_aside.sql")


def downgrade() -> None:
    """Drop both: the steps wait for room in the queue again."""
    run_sql("down/0011_unserved_steps_aside.sql")
