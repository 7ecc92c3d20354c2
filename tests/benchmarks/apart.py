"""A program that waits for tasks which workers of other processes run: how soon it knows of their ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any

import tasker
from tasker.services.submission.submit import Submission, SubmissionResult
from tasker.template.plan import Plan
from tests.benchmarks.conditions import Conditions, Figure, require_complete
from tests.benchmarks.cpu import Spent, seconds_of
from tests.benchmarks.one_process import RUNS, latency
from tests.benchmarks.processes import WORKFLOWS, Bench, bench
from tests.benchmarks.shapes import FORMS, READS, SHAPES

LINEAR = WORKFLOWS / "linear"
HANDLERS = "tests.benchmarks.shapes"
SHAPES_APART = {f"apart_{name}{READS}": f"{name}{READS}" for name in FORMS}
AT_ONCE = {f"apart_throughput{number}{READS}": number for number in (1, 2)}
"""Tasks submitted at once, to so many workers."""
NAMES = ("apart4", "apart_throughput", *SHAPES_APART, *AT_ONCE)
WARM, TASKS, ABREAST = 5, 1000, 20


def measure(conditions: Conditions, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """One task at a time, many that are waited for side by side, and many at once; `tasker worker` runs them."""
    with bench(conditions, "apart", "pgmq", None) as fleet:
        for name in names:
            tell(name)
            while len(fleet.fleet.processes) < AT_ONCE.get(name, 1):
                worker = f"worker{len(fleet.fleet.processes)}"
                fleet.fleet.worker(worker, str(LINEAR), "--handlers", HANDLERS, "--namespace", "bench", lease=15)
            yield asyncio.run(_figure(conditions, fleet, name))


async def _figure(conditions: Conditions, bench: Bench, name: str) -> Figure:
    async with tasker.App(bench.url, work=False) as app:
        if name in AT_ONCE:
            return await _at_once(app, conditions, bench, name)
        if name == "apart_throughput":
            return await _abreast(app, conditions, bench)
        plan = SHAPES[SHAPES_APART[name]]() if name in SHAPES_APART else await app.plan(LINEAR)
        return await _one_by_one(app, plan, conditions, bench, name)


def _spent(bench: Bench) -> Spent:
    return Spent(bench.url, lambda: sum(seconds_of(process.pid) for process in bench.fleet.processes.values()))


async def _one_by_one(app: tasker.App, plan: Plan, conditions: Conditions, bench: Bench, name: str) -> Figure:
    """From the call of `run` to the report in hand, warm; milliseconds."""
    runs = conditions.fewer(RUNS.get(name.removeprefix("apart_").removesuffix(READS), 100), 5)
    for number in range(WARM):
        steps = len((await app.run(plan, {"n": number}, timeout=60)).steps)
    times, spent = [], _spent(bench)
    for number in range(runs):
        started = time.perf_counter()
        report = await app.run(plan, {"n": number}, timeout=60)
        times.append((time.perf_counter() - started) * 1000)
        assert report.succeeded, report.status
    return latency(name, times, spent.each(runs * steps))


async def _abreast(app: tasker.App, conditions: Conditions, bench: Bench) -> Figure:
    """Tasks per second while so many calls of `run` wait at any time."""
    tasks = conditions.fewer(TASKS, 20)
    plan, free = await app.plan(LINEAR), asyncio.Semaphore(ABREAST)

    async def one() -> None:
        async with free:
            assert (await app.run(plan, {}, timeout=120)).succeeded

    more = await _timed(bench, tasks, len(plan.steps), partial(_all, [one] * tasks), one)
    return Figure("apart_throughput", "tasks/s", tasks / more["seconds"], more)


async def _at_once(app: tasker.App, conditions: Conditions, bench: Bench, name: str) -> Figure:
    """Steps per second of tasks that are submitted at once, and waited for."""
    plan, tasks = SHAPES[f"linear4{READS}"](), conditions.fewer(TASKS, 20)

    async def run(number: int) -> None:
        requests = [Submission({"n": each}, idempotency_key=f"{time.time_ns()}-{each}") for each in range(number)]
        submitted = [item for item in await app.submit_many(plan, requests) if isinstance(item, SubmissionResult)]
        await asyncio.gather(*(app.finished(item.task_uuid, timeout=120) for item in submitted))
        ids.extend(item.task_uuid for item in submitted)

    ids: list[str] = []
    more = await _timed(bench, tasks, len(plan.steps), partial(run, tasks), partial(run, 50))
    assert len(ids) == tasks + 50
    require_complete(bench.url, ids)
    return Figure(name, "steps/s", tasks * len(plan.steps) / more["seconds"], more)


async def _timed(bench: Bench, tasks: int, steps: int, work: Work, warm: Work) -> dict[str, Any]:
    await warm()
    spent, started = _spent(bench), time.perf_counter()
    await work()
    seconds = time.perf_counter() - started
    return {"tasks": tasks, "seconds": seconds, **spent.each(tasks * steps)}


async def _all(each: list[Work]) -> None:
    await asyncio.gather(*(one() for one in each))


Work = Callable[[], Coroutine[Any, Any, None]]
