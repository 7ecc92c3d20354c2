"""One process with everything in it: latency, throughput, start-up, memory."""

from __future__ import annotations

import asyncio
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import tasker
from tasker.contracts.plan import Plan
from tasker.execution.settings import WorkerSettings
from tasker.services.submission import Request
from tests.benchmarks.ground import ROOT, Figure, Ground
from tests.benchmarks.shapes import SHAPES, adopt
from tests.support.servers import brokers

RUNS = {"fan100": 30, "fan1000": 8, "batch1000": 40}
TASKS = {"throughput1000": 1000, "throughput5000": 5000}
NAMES = (*SHAPES, *TASKS)


def measure(ground: Ground, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """A figure for each name: of one application that is kept for all of them."""
    figures = asyncio.run(_measure(ground, [name for name in NAMES if name in names], tell))
    yield from figures
    yield Figure("peak_memory", "mib", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


async def _measure(ground: Ground, names: list[str], tell: Callable[[str], None]) -> list[Figure]:
    figures = []
    apart = brokers.engine_settings(ground.backend)
    settings = WorkerSettings(concurrency=200)
    async with tasker.App(ground.url, settings=settings, backend=ground.backend, backend_settings=apart) as app:
        adopt(app.registry)
        for name in names:
            tell(name)
            figures.append(await (_throughput(app, name, ground) if name in TASKS else _latency(app, name, ground)))
        await app.stop_working()
        await brokers.remove_queues(app._resources.messaging, apart)
    return figures


async def _latency(app: tasker.App, name: str, ground: Ground) -> Figure:
    """One task at a time, from submission to observed completion, warm; milliseconds."""
    plan, runs, times = SHAPES[name](), ground.fewer(RUNS.get(name, 100), 5), []
    for number in range(runs + 3):
        started = time.perf_counter()
        submitted = await app.submit(plan, {"n": number}, idempotency_key=f"{name}-{time.time_ns()}")
        await app.finished(submitted.task_uuid, timeout=120)
        if number >= 3:
            times.append((time.perf_counter() - started) * 1000)
    quantile = statistics.quantiles(times, n=100, method="inclusive")
    more = {"p95": quantile[94], "p99": quantile[98], "min": min(times), "runs": runs}
    return Figure(name, "ms", quantile[49], more)


async def _throughput(app: tasker.App, name: str, ground: Ground) -> Figure:
    """Tasks submitted at once; steps per second from first submission to last completion."""
    plan, tasks, stamp = SHAPES["linear4"](), ground.fewer(TASKS[name], 10), time.time_ns()
    requests = [Request({"n": number}, idempotency_key=f"{stamp}-{number}") for number in range(tasks)]
    started = time.perf_counter()
    submitted = [item for item in await app.submit_many(plan, requests) if hasattr(item, "task_uuid")]
    await asyncio.gather(*(app.finished(item.task_uuid, timeout=300) for item in submitted))
    seconds = time.perf_counter() - started
    return Figure(name, "steps/s", _steps(plan, tasks) / seconds, {"tasks": tasks, "seconds": seconds})


def _steps(plan: Plan, tasks: int) -> int:
    return tasks * len(plan.steps)


def start_up(ground: Ground, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """From the start of a process to the end of its first task, with an existing data folder; the best of three."""
    tell("start_up")
    times = [_first_task(ground.folder / "first") for _ in range(2 if ground.quick else 4)]
    yield Figure("start_up", "s", min(times[1:]), {"first": times[0]})


def _first_task(data_dir: Path) -> float:
    command: list[Any] = [sys.executable, "-m", "tasker", "run", ROOT / "workflows" / "linear_math"]
    started = time.perf_counter()
    subprocess.run([*command, "--json", "--data-dir", data_dir], check=True, capture_output=True)
    return time.perf_counter() - started
