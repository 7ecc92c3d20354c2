"""A server that gets `kill -9` with requests in flight: what it has accepted is there, and streams go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import httpx
import psycopg
import pytest

import tasker
from tasker.client import HttpClient
from tasker.client.task_events import TaskEvent
from tasker.template import compile_text
from tests.integration.api.program import ORDERS, WAITING, order, registered
from tests.integration.db.test_connection import free_port
from tests.support.fleets.fleet import Fleet
from tests.support.waiting import until

CREATORS, BEFORE, AFTER = 8, 60, 30


@pytest.fixture
def fleet(database_url: str, tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(database_url, tmp_path)
    yield made
    made.stop()


class Creators:
    """Clients that create tasks, each with a key of its own, and ask again with the same key when no answer comes."""

    def __init__(self, address: str) -> None:
        self._address, self._numbers, self._stopped = address, count(1), False
        self.accepted: dict[int, str] = {}
        self.unanswered = 0

    async def create(self) -> None:
        """Until `stop`."""
        async with httpx.AsyncClient(base_url=self._address, timeout=60) as client:
            while not self._stopped:
                number = next(self._numbers)
                self.accepted[number] = await self._surely(client, number)

    async def _surely(self, client: httpx.AsyncClient, number: int) -> str:
        body = order(number, idempotency_key=str(number), on_duplicate="return_existing")
        while True:
            try:
                answer = await client.post("/v1/tasks", json=body)
            except httpx.TransportError:
                self.unanswered += 1
                await asyncio.sleep(0.05)
                continue
            if answer.status_code != 503:  # the next server is not ready yet
                assert answer.status_code in (200, 201), answer.text
                return str(answer.json()["task_uuid"])
            await asyncio.sleep(0.05)

    async def have(self, accepted: int) -> None:
        """Return when so many were accepted."""
        while len(self.accepted) < accepted:
            await asyncio.sleep(0.01)

    def stop(self) -> None:
        """Create no more."""
        self._stopped = True


async def followed(client: HttpClient, task: str, found: list[TaskEvent]) -> AsyncIterator[None]:
    async for event in client.stream(task):
        found.append(event)
        yield


@pytest.mark.slow
async def test_what_a_killed_server_has_accepted_is_done_once_and_a_stream_goes_on_with_the_next_one(
    database_url: str, fleet: Fleet
) -> None:
    port, events = free_port(), list[TaskEvent]()
    address = f"http://127.0.0.1:{port}"
    async with tasker.App(database_url, registry=registered()) as app, HttpClient(address) as client:
        orders, waiting = (compile_text(text).plans[0] for text in (ORDERS, WAITING))
        for plan in (orders, waiting):
            await app.plans.register(plan)
        await app.plan(orders)
        options = ("--no-config", "--port", str(port), "--database-url", database_url)
        fleet.program("server", "-m", "tasker", "server", *options)
        await asyncio.to_thread(until, lambda: "listens on" in fleet.log("server"), "the server listens")
        task = (await client.submit({"namespace": "nobody", "name": "waiting"}))["task_uuid"]
        stream = followed(client, task, events)
        await anext(stream)

        creators = Creators(address)
        creating = [asyncio.create_task(creators.create()) for _ in range(CREATORS)]
        await creators.have(BEFORE)
        fleet.kill("server")
        before = len(creators.accepted)
        fleet.restart("server")
        await creators.have(before + AFTER)
        creators.stop()
        await asyncio.gather(*creating)

        await client.cancel_task(task)
        async for _ in stream:
            pass
        for accepted in creators.accepted.values():
            await app.finished(accepted, timeout=60)

    assert creators.unanswered, "nothing was in flight when the server was killed"
    with psycopg.connect(database_url) as connection:
        states: dict[str, str] = dict(connection.execute("select task_uuid::text, state from tasker.tasks").fetchall())
    assert states == {task: "cancelled", **dict.fromkeys(creators.accepted.values(), "complete")}
    assert len(states) == 1 + len(creators.accepted), "a task for each key, and none beside them"
    assert [event.kind for event in events].count("end") == 1
    moves = [(event.step, event.from_state, event.to_state) for event in events if event.kind == "transition"]
    assert len(moves) == len(set(moves)), "nothing is told twice"
    assert moves[-1][2] == "cancelled"
