"""Dead letters on a screen that is too narrow for two identifiers."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import click

from tasker.cli.dead_letters.text import list_text
from tasker.services.dead_letters.records import DeadLetter

TASKS = ["01a2059a-dab8-7c22-b9ea-d9416f000000", "01a2059b-dab8-7c22-b9ea-d9416f000000"]


def entry(task: str) -> DeadLetter:
    known: dict[str, Any] = {
        "dlq_entry_uuid": "01a2059a-e71f-7836-a13c-59247c16c11f",
        "task_uuid": task,
        "dlq_reason": "max_retries_exceeded",
        "resolution_status": "pending",
        "dlq_timestamp": datetime(2026, 1, 1, tzinfo=UTC),
        "current_state": "error",
        "task_snapshot": {"namespace": "shop", "task_name": "order"},
    }
    return DeadLetter(**{field.name: known.get(field.name) for field in fields(DeadLetter)})


def test_where_there_is_no_room_the_beginnings_of_the_tasks_are_shown_and_elsewhere_all() -> None:
    found = [entry(task) for task in TASKS]
    narrow, whole = (click.unstyle(list_text(found, width)) for width in (80, None))

    assert max(map(len, narrow.splitlines())) <= 80
    assert [line.split()[:2] for line in narrow.splitlines()[1:]] == [[task[:13], "shop/order"] for task in TASKS]
    assert all(task in whole and found[0].dlq_entry_uuid in whole for task in TASKS)
