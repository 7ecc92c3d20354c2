"""`tasker server` beside a program that has the services in itself: creating tasks and reading them."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

import tasker
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission
from tests.benchmarks.conditions import Conditions, Figure
from tests.benchmarks.cpu import Spent, seconds_of
from tests.benchmarks.one_process import latency
from tests.benchmarks.processes import Bench, bench
from tests.benchmarks.shapes import compiled
from tests.support.waiting import until

NAMES = (
    "app_create",
    "app_read",
    "http_create",
    "http_read",
    "http_read_httpx",
    "http_creates16",
    "http_creates_batch",
)
WARM, CREATES, READINGS, SIDE_BY_SIDE, BATCH = 20, 500, 1000, 16, 100
ABREAST, BATCHES = 2000, 20
HEAD = b"\r\n\r\n"


def measure(conditions: Conditions, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """One request after the other, and many side by side; nobody runs the tasks. Each row has a namespace of its own,
    so that none is refused for the tasks of the rows above it."""
    with bench(conditions, "http", "pgmq", None) as fleet:
        address = serve(fleet)
        for name in names:
            tell(name)
            yield asyncio.run(_Row(conditions, fleet, name, address).figure())


def serve(bench: Bench) -> str:
    """The address of a server, which is started in the fleet."""
    options = ("--no-config", "--port", "0", "--database-url", bench.url)
    bench.fleet.program("server", "-m", "tasker", "server", *options)
    until(lambda: "listens on" in bench.fleet.log("server"), "the server listens", show=lambda: _log(bench))
    found = re.search(r"listens on (\S+)", _log(bench))
    assert found, _log(bench)
    return found[1]


def of_the_server(bench: Bench) -> Spent:
    """What is spent without the client, which is this process."""
    return Spent(bench.url, lambda: seconds_of(bench.fleet.processes["server"].pid), own=False)


def _log(bench: Bench) -> str:
    return bench.fleet.log("server")


class Client:
    """One connection that is kept, and as little around it as can be: what is measured is the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    @asynccontextmanager
    async def to(cls, address: str) -> AsyncIterator[Self]:
        """Connected, and closed at the end."""
        where = urlsplit(address)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        try:
            yield cls(reader, writer)
        finally:
            writer.close()
            await writer.wait_closed()

    async def first_byte(self, path: str) -> tuple[float, str]:
        """Return how many milliseconds a page takes to begin, and the whole page."""
        started = time.perf_counter()
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        answered = (await self._reader.readuntil(HEAD)).decode()
        taken = (time.perf_counter() - started) * 1000
        length = re.search(r"(?i)content-length: (\d+)", answered)
        page = await self._reader.readexactly(int(length[1]) if length else 0)
        assert answered.split()[1] == "200", answered
        return taken, page.decode()

    async def send(self, method: str, path: str, body: Any = None) -> Any:
        """The answer's body; it must be a success."""
        data = b"" if body is None else json.dumps(body).encode()
        head = [f"{method} {path} HTTP/1.1", "Host: localhost"]
        head += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
        self._writer.write("\r\n".join(head).encode() + HEAD + data)
        answered = (await self._reader.readuntil(HEAD)).decode()
        length = re.search(r"(?i)content-length: (\d+)", answered)
        found = await self._reader.readexactly(int(length[1]) if length else 0)
        assert answered.split()[1] in ("200", "201"), found
        return json.loads(found)


class _Row:
    """One figure: on a namespace of its own, of a server's `address` and of the same services in this process."""

    def __init__(self, conditions: Conditions, bench: Bench, name: str, address: str) -> None:
        self._conditions, self._bench, self._name, self._address = conditions, bench, name, address
        self._plan = compiled(
            f"name: linear\nnamespace_name: {name}\nversion: 1.0.0\nidentity_strategy: always_unique\nsteps:\n"
            + "".join(
                f"- {{name: s{n}, handler: bench.noop, dependencies: [{f's{n - 1}' if n else ''}]}}\n" for n in range(4)
            )
        )

    async def figure(self) -> Figure:
        """What the name asks for."""
        async with tasker.App(self._bench.url, work=False) as self._app, Client.to(self._address) as self._client:
            await self._app.plans.register(self._plan)
            order = TemplateSubmission(self._plan.namespace, self._plan.name, None, Submission({"n": 0}))
            self._task = (await self._app.submissions.submit(order)).task_uuid
            found: Figure = await getattr(self, f"_{self._name}")()
            return found

    async def _app_create(self) -> Figure:
        async def create(number: int) -> None:
            order = TemplateSubmission(self._name, "linear", None, Submission({"n": number}))
            submitted = await self._app.submissions.submit(order)
            assert len((await self._app.views.task(submitted.task_uuid)).steps) == len(self._plan.steps)

        return await self._latency(CREATES, create, self._of_this_process)

    async def _app_read(self) -> Figure:
        async def read(_: int) -> None:
            assert len((await self._app.views.task(self._task)).steps) == len(self._plan.steps)

        return await self._latency(READINGS, read, self._of_this_process)

    async def _http_create(self) -> Figure:
        return await self._latency(CREATES, self._create, self._of_the_server)

    async def _http_read(self) -> Figure:
        async def read(_: int) -> None:
            self._require_steps(await self._client.send("GET", f"/v1/tasks/{self._task}"))

        return await self._latency(READINGS, read, self._of_the_server)

    async def _http_read_httpx(self) -> Figure:
        """The same with the client that programs have: the difference is what it costs."""
        path = f"/v1/tasks/{self._task}"
        async with httpx.AsyncClient(base_url=self._address) as client:

            async def read(_: int) -> None:
                self._require_steps((await client.get(path)).raise_for_status().json())

            return await self._latency(READINGS, read, self._of_the_server)

    async def _http_creates16(self) -> Figure:
        each = self._conditions.fewer(ABREAST, 2 * SIDE_BY_SIDE) // SIDE_BY_SIDE

        async def creator() -> None:
            async with Client.to(self._address) as client:
                for number in range(each):
                    assert (await client.send("POST", "/v1/tasks", self._order(number)))["task_uuid"]

        return await self._rate(each * SIDE_BY_SIDE, lambda: asyncio.gather(*(creator() for _ in range(SIDE_BY_SIDE))))

    async def _http_creates_batch(self) -> Figure:
        batches = self._conditions.fewer(BATCHES, 1)

        async def create() -> None:
            for _ in range(batches):
                orders = [self._order(number) for number in range(BATCH)]
                answer = await self._client.send("POST", "/v1/tasks/batch", {"tasks": orders})
                assert answer["created"] == BATCH

        return await self._rate(batches * BATCH, create)

    def _order(self, number: int) -> dict[str, Any]:
        return {"namespace": self._name, "name": "linear", "context": {"n": number}}

    async def _create(self, number: int) -> None:
        assert (await self._client.send("POST", "/v1/tasks", self._order(number)))["task_uuid"]

    def _require_steps(self, task: Mapping[str, Any]) -> None:
        assert len(task["steps"]) == len(self._plan.steps), task

    async def _latency(self, times: int, one: Callable[[int], Awaitable[Any]], spending: Callable[[], Spent]) -> Figure:
        for number in range(WARM):
            await one(number)
        times, taken, spent = self._conditions.fewer(times, 10), [], spending()
        for number in range(times):
            started = time.perf_counter()
            await one(number)
            taken.append((time.perf_counter() - started) * 1000)
        return latency(self._name, taken, spent.each(times))

    async def _rate(self, tasks: int, work: Callable[[], Awaitable[Any]]) -> Figure:
        for number in range(WARM):
            await self._create(number)
        spent, started = self._of_the_server(), time.perf_counter()
        await work()
        seconds = time.perf_counter() - started
        return Figure(self._name, "tasks/s", tasks / seconds, {"tasks": tasks, "seconds": seconds, **spent.each(tasks)})

    def _of_this_process(self) -> Spent:
        return Spent(self._bench.url)

    def _of_the_server(self) -> Spent:
        return of_the_server(self._bench)
