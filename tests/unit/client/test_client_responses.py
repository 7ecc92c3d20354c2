"""What a client is answered."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tasker.client import Attempt, HealthResponse, Pagination, Step, Task
from tasker.client.task_events import read_events
from tasker.server.application import described
from tasker.views.model import published_fields, published_form
from tasker.views.tasks import TaskRequested


def test_an_answer_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        TaskRequested("t").task_uuid = "z"  # type: ignore[misc]


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


@pytest.mark.parametrize("kind", [Task, Step, Attempt, Pagination])
def test_clients_keep_every_field_of_an_answer(kind: type[Any]) -> None:
    schema = described().openapi()["components"]["schemas"][published_form(kind).name]

    assert {public for _, public, _ in published_fields(kind)} == schema["properties"].keys()


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
