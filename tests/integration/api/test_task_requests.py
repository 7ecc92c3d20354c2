"""Asking an orchestrator for a task through a server: what arrives in the queue, and what is refused before."""

from __future__ import annotations

from typing import Any

import httpx
import psycopg
import pytest

import tasker
from tasker.services.submission.by_message import TaskRequestMessage
from tests.integration.api.conftest import app, client, registry
from tests.integration.api.program import order
from tests.integration.api.test_access import CONFINED, by, guarded
from tests.integration.api.test_errors import problem

__all__ = ["app", "client", "guarded", "registry"]  # fixtures
QUEUED = "select message::text from pgmq.q_orchestration_task_requests order by msg_id"
KNOWN = "0195c8f0-1d2e-7000-8000-00000a000000"


def queued(app: tasker.App) -> list[TaskRequestMessage]:
    """The requests in the queue."""
    with psycopg.connect(app.database_url) as connection:
        return [TaskRequestMessage.decode(text.encode()) for (text,) in connection.execute(QUEUED)]


async def test_a_request_is_put_on_the_queue_as_it_was_described(client: httpx.AsyncClient, app: tasker.App) -> None:
    body = {**order(5), "priority": 4, "tags": ["web"], "initiator": "till", "version": "1.0.0"}
    traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    answer = await client.post("/v1/task-requests", json=body, headers={"traceparent": traceparent})

    assert (answer.status_code, answer.json()["status"]) == (202, "requested")
    task = answer.json()["task_uuid"]
    assert answer.headers["Location"] == f"/v1/tasks/{task}"
    found = next(each for each in queued(app) if each.task_uuid == task)
    assert (found.namespace, found.template, found.version) == ("shop", "orders", "1.0.0")
    asked = found.request
    assert (asked.context, asked.priority, asked.tags, asked.initiator) == ({"amount": 5}, 4, ["web"], "till")
    assert asked.traceparent == traceparent
    assert (await client.get(f"/v1/tasks/{task}")).status_code == 404, "no orchestrator has taken it yet"


async def test_a_request_that_is_sent_again_asks_for_the_same_task(client: httpx.AsyncClient, app: tasker.App) -> None:
    for _ in range(2):
        answer = await client.post("/v1/task-requests", json={**order(6), "task_uuid": KNOWN})
        assert answer.json()["task_uuid"] == KNOWN
    assert [each.task_uuid for each in queued(app)].count(KNOWN) == 2


@pytest.mark.parametrize("wrong", [{"on_duplicate": "refuse"}, {"task_uuid": "7"}, {"priority": "hihg"}])
async def test_what_is_no_request_is_refused_at_once(client: httpx.AsyncClient, wrong: dict[str, Any]) -> None:
    problem(await client.post("/v1/task-requests", json={**order(7), **wrong}), 400, "BAD_REQUEST", "malformed_request")


async def test_who_is_confined_to_a_namespace_asks_for_none_elsewhere(guarded: httpx.AsyncClient) -> None:
    asked = {"headers": by(CONFINED), "json": {"namespace": "elsewhere", "name": "orders"}}
    problem(await guarded.post("/v1/task-requests", **asked), 403, "FORBIDDEN", "forbidden")
    allowed = await guarded.post("/v1/task-requests", headers=by(CONFINED), json=order(8))
    assert allowed.status_code == 202
