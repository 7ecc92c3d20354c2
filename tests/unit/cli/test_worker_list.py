"""`tasker worker list`: what it says of each process."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from tasker.cli.commands.worker_list import list_text
from tasker.views.fleet import WorkerInfo

ROW = WorkerInfo(
    "01a1fad7", "worker", name=None, host="here", pid=7, version="1.0", state="live",
    namespaces=["shop"], callables=["h"], tags=[], concurrency=10, in_hand=3, beat_age_ms=4200,
    started_at=datetime(2026, 1, 1, tzinfo=UTC), beat_at=datetime(2026, 1, 1, 12, tzinfo=UTC),
    lease_left_ms=9000,
)  # fmt: skip


def test_the_steps_in_hand_are_said_to_be_as_old_as_the_last_beat() -> None:
    heading, line = click.unstyle(list_text([ROW], callables=False)).splitlines()

    assert heading.index("steps at beat") == line.index("3/10")
    assert "4.2 s ago" in line
