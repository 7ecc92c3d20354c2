"""What a client is answered."""

from __future__ import annotations

import dataclasses

import pytest

from tasker.client import HealthResponse, TaskListResponse, TaskResponse


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
