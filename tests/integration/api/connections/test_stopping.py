"""Requests under way when the server stops get an answer."""

from __future__ import annotations

import asyncio

import httpx
import pytest

import tasker
from tasker.server.application import application
from tasker.server.sockets import HttpServer, listen
from tasker.template import compile_text
from tests.integration.api.connections.conftest import GET, HOST, Serve
from tests.integration.api.program import WAITING
from tests.support.waiting import LOOK_SECONDS

WAITING_TASK = {"namespace": "nobody", "name": "waiting"}


async def test_wait_is_answered_with_the_task_as_it_is(app: tasker.App) -> None:
    (plan,) = compile_text(WAITING).plans
    await app.plans.register(plan)
    server = HttpServer(application(app), listen("127.0.0.1", 0), grace_seconds=30)
    await server.start()
    async with httpx.AsyncClient(base_url=server.address, timeout=60) as client:
        task = (await client.post("/v1/tasks", json=WAITING_TASK)).json()["task_uuid"]
        creating = asyncio.create_task(client.post("/v1/tasks", json=WAITING_TASK, params={"wait": "5m"}))
        reading = asyncio.create_task(client.get(f"/v1/tasks/{task}", params={"wait": "5m"}))
        while server.connections < 2 or (await client.get("/v1/tasks")).json()["pagination"]["total_count"] < 2:
            await asyncio.sleep(LOOK_SECONDS)
        await client.get("/live")  # both requests were sent before it
        await server.stop()
        created, read = await creating, await reading

    assert (created.status_code, read.status_code) == (201, 200)
    assert created.json()["status"] not in ("complete", "error", "cancelled")
    assert (read.json()["task_uuid"], read.json()["status"]) == (task, created.json()["status"])


async def test_request_that_outlasts_the_stop_is_answered_503(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    served = await serve()
    async with served.client() as client:
        await client.send(b"POST /slow HTTP/1.1\r\n" + HOST + b"Content-Length: 10\r\n\r\nhalf")
        async with served.client() as other:
            await other.send(GET)
            await other.answer()
        await served.server.stop()
        answer = await client.answer()
        assert (answer.status, answer.problem["code"], answer.headers["retry-after"]) == (503, "stopping", "1")
        assert await client.rest() == b""
    (line,) = [each for each in caplog.messages if not each.startswith("Cancel 1 running")]
    assert "request_cut" in line
    assert "/slow" in line
