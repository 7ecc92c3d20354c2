"""Workers, handlers, queues and pauses over HTTP."""

from __future__ import annotations

import httpx
import pytest

import tasker
from tasker.server.shapes.fleet import (
    HandlerListResponse,
    LimitListResponse,
    PauseListResponse,
    QueuesResponse,
    WorkerListResponse,
)
from tests.integration.api.program import order
from tests.integration.api.test_errors import UNKNOWN, problem


async def test_who_is_at_work_is_listed_with_handlers(client: httpx.AsyncClient) -> None:
    live = [
        each
        for each in WorkerListResponse.model_validate((await client.get("/v1/workers")).json()).workers
        if each.state == "live"
    ]
    assert [each.kind for each in live] == ["worker"]
    assert "shop.check" in live[0].callables

    for path, expected in (("", True), ("/shop", True), ("/elsewhere", False), ("/shop/shop.check", True)):
        found = HandlerListResponse.model_validate((await client.get(f"/v1/handlers{path}")).json())
        assert any(each.name == "shop.check" for each in found.handlers) is expected, path


async def test_queues_are_shown_beside_what_the_database_says(client: httpx.AsyncClient) -> None:
    found = QueuesResponse.model_validate((await client.get("/v1/queues")).json())

    assert found.healthy
    assert all(each.depth >= 0 for each in found.queues)


LIMITED = """\
name: limited
namespace_name: shop
version: 1.0.0
steps:
  - {name: check, handler: shop.check, concurrency: {key: input.order_id, limit: 2}, rate_limit: {rate: 30/m}}
"""


async def test_limits_are_listed_with_what_runs_and_waits(client: httpx.AsyncClient, app: tasker.App) -> None:
    await client.post("/v1/templates", json={"yaml": LIMITED})
    await client.post("/v1/pauses", json={"template": "shop/limited", "reason": "look"})
    for number in range(3):
        await client.post(
            "/v1/tasks", json={**order(number), "name": "limited", "context": {"order_id": 7, "n": number}}
        )

    found = LimitListResponse.model_validate((await client.get("/v1/limits")).json()).limits

    assert {(limit.name, limit.most, limit.rate) for limit in found} == {
        ("step shop/limited/check", 2, None),
        ("rate step shop/limited/check", None, 0.5),
    }
    (one,) = (await client.get("/v1/limits", params={"name": "step shop/limited/check"})).json()["limits"]
    assert (one["running"], one["waiting"]) == (0, 0), "paused steps neither run nor wait for a permit"
    assert one["keys"] == []
    assert [use.name for use in await app.limits.list()] == sorted(limit.name for limit in found)
    await client.delete("/v1/pauses", params={"template": "shop/limited"})


async def test_what_is_paused_starts_when_it_is_resumed(client: httpx.AsyncClient) -> None:
    asked = {"template": "shop/orders", "reason": "the bank is closed", "actor": "ada"}
    assert (await client.post("/v1/pauses", json=asked)).json() == {"target": "shop/orders", "paused": True}
    assert (await client.post("/v1/pauses", json=asked)).json()["paused"] is False
    task = (await client.post("/v1/tasks", json=order(1))).json()["task_uuid"]

    (pause,) = PauseListResponse.model_validate((await client.get("/v1/pauses")).json()).pauses
    assert (pause.actor, pause.reason, pause.held) == ("ada", "the bank is closed", 1)
    resumed = await client.delete("/v1/pauses", params={"template": "shop/orders"})
    assert resumed.json() == {"target": "shop/orders", "resumed": True, "held": 1}
    assert (await client.get(f"/v1/tasks/{task}", params={"wait": "20s"})).json()["status"] == "complete"
    assert (await client.delete("/v1/pauses", params={"template": "shop/orders"})).json()["resumed"] is False


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "BAD_REQUEST"),
        ({"namespace": "shop", "task": UNKNOWN}, 400, "BAD_REQUEST"),
        ({"namespace": "nobody knows"}, 400, "BAD_REQUEST"),
        ({"template": "shop"}, 400, "BAD_REQUEST"),
        ({"task": UNKNOWN}, 400, "BAD_REQUEST"),
        ({"queue": "x"}, 400, "BAD_REQUEST"),
    ],
)
async def test_what_cannot_be_paused_is_refused(
    client: httpx.AsyncClient, body: dict[str, str], status: int, code: str
) -> None:
    problem(await client.post("/v1/pauses", json=body), status, code)
