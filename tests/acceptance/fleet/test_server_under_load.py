"""A server with much to do at the same time: requests of all kinds, and as many streams as it takes."""

from __future__ import annotations

import asyncio
import json
import re
import resource
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

import tasker
from tasker.services.submission.submit import Submission
from tasker.settings.http import OrchestrationWeb
from tasker.template import compile_text
from tests.benchmarks.cpu import memory_of
from tests.benchmarks.processes import WORKFLOWS
from tests.integration.api.program import WAITING
from tests.support.fleets.fleet import Fleet
from tests.support.registered import submit_registered
from tests.support.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.slow]
PER_SECOND, SECONDS, CONNECTIONS = 200, 60, 32
CLIENTS, AT_ONCE = 10_000, 200
ADDRESSES = 4
FILES = 100
"""That a process has open beside its connections."""
MIB_OF_A_CLIENT = 0.05
"""Those of 10,000 that read nothing fit into half a gigabyte."""
Answer = tuple[int, dict[str, str], bytes]
Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]
OPEN = "select count(*) from tasker.tasks where not complete"
COMPLETE = "select task_uuid::text from tasker.tasks where state = 'complete'"


@pytest.fixture
def fleet(database_url: str, tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(database_url, tmp_path, environment={"TASKER_LOG_LEVEL": "WARNING"})
    yield made
    made.stop()


def served(fleet: Fleet, database_url: str, *options: str) -> str:
    """The address of a server."""
    fleet.program(
        "server", "-m", "tasker", "server", "--no-config", "--port", "0", "--database-url", database_url, *options
    )
    until(lambda: "listens on" in fleet.log("server"), "the server listens", show=lambda: fleet.log("server"))
    return str(re.findall(r"listens on (\S+)", fleet.log("server"))[0])


async def ask(pair: Pair, method: str, path: str, body: Any = None) -> Answer:
    """One request over a connection that is kept."""
    reader, writer = pair
    await _send(writer, method, path, body)
    status, headers = await _head(reader)
    return status, headers, await reader.readexactly(int(headers.get("content-length", 0)))


async def _send(writer: asyncio.StreamWriter, method: str, path: str, body: Any = None) -> None:
    data = b"" if body is None else json.dumps(body).encode()
    head = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    head += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + data)
    await writer.drain()


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = (line.partition(": ") for line in lines)
    return int(first.split()[1]), {name.lower(): value for name, _, value in headers}


@asynccontextmanager
async def connected(address: str, number: int = 1) -> AsyncIterator[list[Pair]]:
    """So many connections, closed at the end."""
    host, port = address.removeprefix("http://").split(":")
    pairs: list[Pair] = []
    try:
        while len(pairs) < number:
            places = range(len(pairs), min(number, len(pairs) + AT_ONCE))
            sources = ((f"127.0.0.{2 + place % ADDRESSES}", 0) for place in places)  # one may have half of them
            opening = (asyncio.open_connection(host, int(port), local_addr=source) for source in sources)
            pairs += await asyncio.gather(*opening)
        yield pairs
    finally:
        for _, writer in pairs:
            writer.transport.abort()


def requests(namespace: str, created: list[str]) -> Iterator[tuple[str, str, Any]]:
    """Creating and reading in turns: of what was created last, and of much; `created` has one already."""
    for number in count():
        body = {"namespace": namespace, "name": "linear", "idempotency_key": str(number)}
        yield "POST", "/v1/tasks", body
        yield "GET", READS[number % len(READS)].format(task=created[-1]), None


READS = (
    "/v1/tasks/{task}",
    "/v1/tasks?per_page=20",
    "/v1/tasks/{task}/workflow_steps",
    "/v1/templates",
    "/v1/tasks/{task}/explain",
)


async def test_two_hundred_requests_a_second_are_answered_for_a_minute_without_an_error(
    database_url: str, fleet: Fleet
) -> None:
    """As many as that where the machine can: nobody asks for more, and nobody says how long an answer takes."""
    fleet.worker("worker", str(WORKFLOWS / "linear"), "--namespace", "bench", lease=30)
    address = served(fleet, database_url)
    created, statuses, times = list[str](), Counter[int](), list[float]()
    wanted, numbers = requests("bench", created), count()

    async def client(pair: Pair, began: float) -> None:
        while (moment := next(numbers) / PER_SECOND) < SECONDS and time.monotonic() - began < SECONDS:
            await asyncio.sleep(max(0.0, began + moment - time.monotonic()))
            (method, path, body), asked = next(wanted), time.perf_counter()
            status, _, answer = await ask(pair, method, path, body)
            times.append((time.perf_counter() - asked) * 1000)
            statuses[status] += 1
            assert status == (201 if method == "POST" else 200), (method, path, answer)
            if method == "POST":
                created.append(json.loads(answer)["task_uuid"])

    async with connected(address, CONNECTIONS) as pairs:
        first = {"namespace": "bench", "name": "linear", "idempotency_key": "the first"}
        created.append(json.loads((await ask(pairs[0], "POST", "/v1/tasks", first))[2])["task_uuid"])
        began = time.monotonic()
        await asyncio.gather(*(client(pair, began) for pair in pairs))
    ordered = sorted(times)
    rank = {f"p{q}": f"{ordered[len(ordered) * q // 100]:.1f} ms" for q in (50, 95, 99)}
    print(f"\n{len(times) / SECONDS:.0f} requests a second: {rank}, {dict(statuses)}")

    with psycopg.connect(database_url, autocommit=True) as database:
        await asyncio.to_thread(until, lambda: not database.execute(OPEN).fetchall()[0][0], "all tasks have ended")
        found = {row[0] for row in database.execute(COMPLETE).fetchall()}
    assert found == set(created)
    assert len(created) == 1 + statuses[201]


async def test_of_ten_thousand_streams_as_many_as_may_be_are_kept_unread_and_the_others_refused(
    database_url: str, fleet: Fleet
) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < CLIENTS + FILES:
        pytest.skip("a process may open too few files here (ulimit -n)")
    address, answers = served(fleet, database_url), Counter[int]()
    async with tasker.App(database_url, work=False) as app, connected(address, CLIENTS) as clients:
        (plan,) = compile_text(WAITING).plans
        task = (await submit_registered(app, (await app.plans.register(plan)).plan, Submission({}))).task_uuid
        before, streams = memory_of(fleet.processes["server"].pid), list[Pair]()
        for batch in (clients[place : place + AT_ONCE] for place in range(0, CLIENTS, AT_ONCE)):
            for _, writer in batch:
                await _send(writer, "GET", f"/v1/tasks/{task}/events")
            for pair in batch:
                status, headers = await _head(pair[0])
                answers[status] += 1
                if status == 200:
                    streams.append(pair)
                    continue
                assert (status, headers["retry-after"]) == (503, "5")
                refusal = json.loads(await pair[0].readexactly(int(headers["content-length"])))
                assert refusal["code"] == "too_many_streams"
        used = memory_of(fleet.processes["server"].pid) - before
        print(f"\n{dict(answers)}; {used:.0f} MiB")
        assert answers == {200: OrchestrationWeb.max_streams, 503: CLIENTS - OrchestrationWeb.max_streams}
        assert used < CLIENTS * MIB_OF_A_CLIENT

        assert (await ask(clients[-1], "GET", f"/v1/tasks/{task}"))[0] == 200
        await app.tasks.cancel(task)
        for reader, _ in streams:
            assert b"event: end" in await reader.readuntil(b'data: {"status":"cancelled"}')
        assert (await ask(clients[-1], "GET", "/live"))[0] == 200
