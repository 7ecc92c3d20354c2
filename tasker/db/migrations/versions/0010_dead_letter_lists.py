"""Lists and groups of dead letters that do not read the content of each entry."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add columns for the fields that entries are searched by, with their indexes."""
    run_sql("up/0010_dead_letter_lists.sql")


def downgrade() -> None:
    """Drop them."""
    run_sql("down/0010_dead_letter_lists.sql")
