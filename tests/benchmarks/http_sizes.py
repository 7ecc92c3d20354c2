"""`tasker server` when much is going on, and when what it reads is large."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import tasker
from tasker.services.submission.submit import Submission, SubmissionResult
from tasker.template.plan import Plan
from tests.benchmarks.conditions import Conditions, Figure
from tests.benchmarks.one_process import latency
from tests.benchmarks.over_http import CREATES, READINGS, Client, of_the_server, serve
from tests.benchmarks.processes import WORKFLOWS, Bench, bench
from tests.support.copies import copy_task
from tests.support.random_plans import Spec, build_plan
from tests.support.waiting import until

NAMES = ("http_create_in_flight", "http_read_in_flight", "http_read_finished", "http_read_wide")
IN_FLIGHT, FINISHED, STEPS, LOOK_SECONDS = 1000, 100_000, 10_000, 0.2
OPEN = "select count(*) from tasker.tasks where not complete"


def measure(conditions: Conditions, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """One request after the other, over one connection."""
    with bench(conditions, "http_sizes", "pgmq", None) as fleet:
        address = serve(fleet)
        fleet.fleet.worker("worker", str(WORKFLOWS / "linear"), "--namespace", "bench", lease=15)
        for name in names:
            tell(name)
            yield asyncio.run(_Row(conditions, fleet, name, address).figure())


class _Row:
    """One figure of the server at `address`."""

    def __init__(self, conditions: Conditions, bench: Bench, name: str, address: str) -> None:
        self._conditions, self._bench, self._name, self._address = conditions, bench, name, address

    async def figure(self) -> Figure:
        """What the name asks for."""
        async with tasker.App(self._bench.url, work=False) as self._app, Client.to(self._address) as self._client:
            self._plan = await self._app.plan(WORKFLOWS / "linear")
            found: Figure = await getattr(self, f"_{self._name}")()
            return found

    async def _http_create_in_flight(self) -> Figure:
        async def create(number: int) -> None:
            body = {"namespace": "bench", "name": "linear", "idempotency_key": f"busy {time.time_ns()} {number}"}
            assert (await self._client.send("POST", "/v1/tasks", body))["task_uuid"]

        return await self._in_flight(CREATES, create)

    async def _http_read_in_flight(self) -> Figure:
        task = await self._ended()
        return await self._in_flight(READINGS, lambda _: self._read(task, 4))

    async def _http_read_finished(self) -> Figure:
        task, finished = await self._ended(), self._conditions.fewer(FINISHED, 100)
        copy_task(self._bench.database, task, finished)
        self._bench.database.execute("vacuum analyze")
        assert self._bench.value("select count(*) from tasker.task_details") > finished
        return await self._latency(READINGS, lambda _: self._read(task, 4))

    async def _http_read_wide(self) -> Figure:
        steps = self._conditions.fewer(STEPS, 100)
        plan = build_plan(*(Spec(f"s{number}") for number in range(steps)), namespace="wide", name="wide")
        task = (await self._submitted(plan, 1))[0]
        return await self._latency(READINGS // 50, lambda _: self._read(task, steps))

    async def _in_flight(self, times: int, one: Callable[[int], Awaitable[Any]]) -> Figure:
        """While so many tasks are open: as many as have ended are added."""
        wanted = self._conditions.fewer(IN_FLIGHT, 10)
        adding = asyncio.create_task(self._add(wanted))
        while self._bench.value(OPEN) < wanted // 2:
            await asyncio.sleep(LOOK_SECONDS)
        try:
            return await self._latency(times, one)
        finally:
            adding.cancel()
            await asyncio.to_thread(until, lambda: not self._bench.value(OPEN), "all tasks have ended", limit=300)

    async def _add(self, wanted: int) -> None:
        while True:
            await self._submitted(self._plan, wanted - self._bench.value(OPEN))
            await asyncio.sleep(LOOK_SECONDS)

    async def _submitted(self, plan: Plan, number: int) -> list[str]:
        requests = [Submission({"n": each}, idempotency_key=f"{time.time_ns()} {each}") for each in range(number)]
        answers = await self._app.submit_many(plan, requests)
        return [each.task_uuid for each in answers if isinstance(each, SubmissionResult)]

    async def _ended(self) -> str:
        (task,) = await self._submitted(self._plan, 1)
        assert (await self._app.wait(task, timeout=60)).succeeded
        return task

    async def _read(self, task: str, steps: int) -> None:
        found = await self._client.send("GET", f"/v1/tasks/{task}")
        assert len(found["steps"]) == steps, len(found["steps"])

    async def _latency(self, times: int, one: Callable[[int], Awaitable[Any]]) -> Figure:
        await one(-1)
        times, taken, spent = self._conditions.fewer(times, 10), [], of_the_server(self._bench)
        for number in range(times):
            started = time.perf_counter()
            await one(number)
            taken.append((time.perf_counter() - started) * 1000)
        return latency(self._name, taken, spent.each(times))
