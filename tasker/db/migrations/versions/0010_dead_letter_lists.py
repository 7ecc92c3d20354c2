"""Lists and groups of dead letters that do not read what each of them carries."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add what entries are looked for by as columns, with their indexes."""
    run_sql("up/0010_dead_letter_lists.sql")


def downgrade() -> None:
    """Drop them."""
    run_sql("down/0010_dead_letter_lists.sql")
