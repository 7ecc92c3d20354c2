"""Replays of dead letters."""

from __future__ import annotations

from tasker.db.migrations.run_sql import run_sql

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the tables."""
    run_sql("up/0003_replays.sql")


def downgrade() -> None:
    """Drop them; dead letters still record that their tasks were replayed."""
    run_sql("down/0003_replays.sql")
