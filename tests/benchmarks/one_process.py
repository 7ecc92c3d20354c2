"""One process with everything in it: latency, throughput, memory."""

from __future__ import annotations

import asyncio
import resource
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import tasker
from tasker.execution.settings import WorkerSettings
from tasker.services.submission.submit import Submission
from tasker.template.plan import Plan
from tests.benchmarks.conditions import Conditions, Figure, require_complete
from tests.benchmarks.cpu import Spent
from tests.benchmarks.shapes import READS, SHAPES, adopt, family
from tests.support.servers import brokers
from tests.support.worker_settings import worker_settings

RUNS = {"fan100": 30, "fan1000": 8, "batch1000": 40}
TASKS = {f"throughput{number}{ending}": number for ending in ("", READS) for number in (1000, 5000)}
RUNS_AT_ONCE = {"runs4": 4, "runs20": 20}
"""Calls of `run` that wait at any time."""
FAN_CHILDREN = "fan_children"
NAMES = (*SHAPES, *TASKS, *RUNS_AT_ONCE, FAN_CHILDREN)
WARM = 3
SETTINGS = {"": worker_settings(concurrency=200), READS: WorkerSettings()}
"""Who reads what it is given runs as a worker does that nobody has set anything for."""


def measure(conditions: Conditions, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """A figure for each name: of one application that is kept for all that have the same settings."""
    for ending, settings in SETTINGS.items():
        if chosen := [name for name in NAMES if name in names and (READS if name.endswith(READS) else "") == ending]:
            yield from asyncio.run(_measure(conditions, chosen, settings, tell))
    yield Figure("peak_memory", "mib", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


async def _measure(
    conditions: Conditions, names: list[str], settings: WorkerSettings, tell: Callable[[str], None]
) -> list[Figure]:
    figures = []
    apart = brokers.engine_settings(conditions.backend)
    async with tasker.App(conditions.url, settings=settings, backend=conditions.backend, backend_settings=apart) as app:
        adopt(app.registry)
        for name in names:
            tell(name)
            if name in RUNS_AT_ONCE:
                figures.append(await _runs(app, name, conditions))
            elif name == FAN_CHILDREN:
                figures.append(await _children(app, conditions))
            elif name in TASKS:
                found = await throughput(app, _linear(name), conditions.fewer(TASKS[name], 10), conditions)
                figures.append(replace(found, name=name))
            else:
                figures.append(await _latency(app, name, conditions))
        await app.stop_working()
        await brokers.remove_queues(app._resources.messaging, apart)
    return figures


async def _latency(app: tasker.App, name: str, conditions: Conditions) -> Figure:
    """One task at a time, warm, in milliseconds: from submission to its observed end, or to its results in hand."""
    plan, runs = SHAPES[name](), conditions.fewer(RUNS.get(name.removesuffix(READS), 100), 5)

    async def ended(number: int) -> None:
        submitted = await app.submit(plan, {"n": number}, idempotency_key=f"{name}-{time.time_ns()}")
        await app.finished(submitted.task_uuid, timeout=120)
        ids.append(submitted.task_uuid)

    async def reported(number: int) -> None:
        report = await app.run(plan, {"n": number}, timeout=120)
        assert report.succeeded, report.status
        ids.append(report.task_uuid)

    ids: list[str] = []
    for number in range(WARM):
        await reported(number)
    steps = len((await app.wait(ids[-1])).steps)
    one, times, spent = reported if name.endswith(READS) else ended, [], Spent(conditions.url)
    for number in range(runs):
        started = time.perf_counter()
        await one(number)
        times.append((time.perf_counter() - started) * 1000)
    figure = latency(name, times, spent.each(runs * steps))
    require_complete(conditions.url, ids)
    return figure


async def _runs(app: tasker.App, name: str, conditions: Conditions) -> Figure:
    """Tasks of four steps per second, whose reports are waited for side by side."""
    plan, tasks, free = SHAPES["linear4"](), conditions.fewer(1000, 20), asyncio.Semaphore(RUNS_AT_ONCE[name])

    async def one(number: int) -> None:
        async with free:
            report = await app.run(plan, {"n": number}, idempotency_key=f"{stamp}-{number}", timeout=120)
            assert report.succeeded, report.status

    stamp, spent, started = time.time_ns(), Spent(conditions.url), time.perf_counter()
    await asyncio.gather(*map(one, range(tasks)))
    seconds, steps = time.perf_counter() - started, tasks * len(plan.steps)
    return Figure(name, "tasks/s", tasks / seconds, {"tasks": tasks, "seconds": seconds, **spent.each(steps)})


async def _children(app: tasker.App, conditions: Conditions) -> Figure:
    """One step starts 10,000 child tasks of one step each, a hundred at a time: from the submission to its result."""
    number = conditions.fewer(10_000, 20)
    parent, child = family()
    await app.plans.register(child, force=True)
    await app.plan(parent)
    spent, started = Spent(conditions.url), time.perf_counter()
    report = await app.run(parent, {"list": [*range(number)]}, timeout=600)
    seconds = time.perf_counter() - started
    assert report.steps["children"].result["succeeded"] == number, report.status
    more = {"children": number, "seconds": seconds, **spent.each(number)}
    return Figure(FAN_CHILDREN, "children/s", number / seconds, more)


def latency(name: str, times: list[float], more: Mapping[str, Any]) -> Figure:
    """The figure of these times, in milliseconds."""
    quantile = statistics.quantiles(times, n=100, method="inclusive")
    found = {"p95": quantile[94], "p99": quantile[98], "min": min(times), "runs": len(times)}
    return Figure(name, "ms", quantile[49], {**found, **more})


async def throughput(app: tasker.App, shape: str, tasks: int, conditions: Conditions) -> Figure:
    """Tasks of a shape submitted at once; steps per second from first submission to last completion."""
    return await throughput_of(app, SHAPES[shape](), tasks, conditions)


async def throughput_of(
    app: tasker.App, plan: Plan, tasks: int, conditions: Conditions, then: Callable[[], Awaitable[None]] | None = None
) -> Figure:
    """The same for a plan; `then` is waited for, and counts, behind the last completion."""
    stamp = time.time_ns()
    requests = [Submission({"n": number}, idempotency_key=f"{stamp}-{number}") for number in range(tasks)]
    spent, started, steps = Spent(conditions.url), time.perf_counter(), tasks * len(plan.steps)
    submitted = [item for item in await app.submit_many(plan, requests) if hasattr(item, "task_uuid")]
    await asyncio.gather(*(app.finished(item.task_uuid, timeout=300) for item in submitted))
    if then is not None:
        await then()
    seconds = time.perf_counter() - started
    figure = Figure(plan.name, "steps/s", steps / seconds, {"tasks": tasks, "seconds": seconds, **spent.each(steps)})
    assert len(submitted) == tasks
    require_complete(conditions.url, [item.task_uuid for item in submitted])
    return figure


def _linear(name: str) -> str:
    return f"linear4{READS}" if name.endswith(READS) else "linear4"
