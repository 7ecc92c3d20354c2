"""What a client is answered."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tasker.client import (
    HealthResponse,
    PaginationInfo,
    StepAuditResponse,
    StepResponse,
    TaskListResponse,
    TaskResponse,
)
from tasker.client.task_events import read_events
from tasker.server.application import described


def test_an_answer_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        TaskResponse().name = "z"  # type: ignore[misc]


def test_a_page_takes_tasks_as_data_and_tasks_that_are_made() -> None:
    made = TaskResponse(name="a")

    assert TaskListResponse.from_dict({"tasks": [made, {"name": "b"}]}).tasks == [made, TaskResponse(name="b")]


@pytest.mark.parametrize(
    ("data", "healthy"),
    [
        ({"status": "healthy"}, True),
        ({"status": "unhealthy"}, False),
        ({"status": "healthy", "healthy": False}, False),
    ],
)
def test_health_follows_from_the_status_where_it_is_not_said(data: dict[str, object], healthy: bool) -> None:
    assert HealthResponse.from_dict(data).healthy is healthy


@pytest.mark.parametrize("kind", [TaskResponse, StepResponse, StepAuditResponse, PaginationInfo])
def test_clients_keep_every_field_of_an_answer(kind: type[Any]) -> None:
    schema = described().openapi()["components"]["schemas"][kind.__name__]
    dropped = schema["properties"].keys() - {field.name for field in dataclasses.fields(kind)}

    assert dropped - READ_BY_THE_CLIENT == set()


READ_BY_THE_CLIENT = {"more_steps"}
"""Number of steps that a client still has to read: it returns all of them."""


async def test_progress_has_what_its_handler_reported_and_other_events_are_skipped() -> None:
    async def lines() -> AsyncIterator[str]:
        for data in ({"items_processed": 3}, {"done": 2, "total": 8, "message": "halfway"}):
            common = {"step": "count", "step_uuid": "u", "at": "2026-01-31T12:00:00Z", "worker_uuid": None}
            for line in ("event: progress", f"data: {json.dumps({**common, **data})}", ""):
                yield line
        for line in ("event: progress", "", "event: unheard_of", "data: {}", ""):
            yield line

    counted, reported = [event async for event in read_events(lines())]
    assert (counted.items_processed, counted.reported) == (3, None)
    assert reported.reported == {"done": 2, "total": 8, "message": "halfway"}
