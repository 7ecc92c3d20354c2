"""A program that waits for tasks which a worker of another process runs: how soon it knows of their ends."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator, Mapping

import tasker
from tests.benchmarks.ground import Figure, Ground
from tests.benchmarks.processes import WORKFLOWS, Bench, bench

NAMES = ("apart4", "apart_throughput")
LINEAR = WORKFLOWS / "linear"
RUNS, WARM, TASKS, ABREAST = 100, 5, 1000, 20


def measure(ground: Ground, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """One task of four steps at a time, and many that are waited for side by side; one `tasker worker`."""
    with bench(ground, "apart", "pgmq", None) as fleet:
        fleet.fleet.worker("worker0", str(LINEAR), lease=15)
        for name in names:
            tell(name)
            yield asyncio.run((_one_by_one if name == "apart4" else _abreast)(ground, fleet))


async def _one_by_one(ground: Ground, bench: Bench) -> Figure:
    """From the call of `run` to the report in hand, warm; milliseconds."""
    runs, times = ground.fewer(RUNS, 5), []
    async with tasker.App(bench.url, work=False) as app:
        plan = await app.plan(LINEAR)
        for number in range(runs + WARM):
            started = time.perf_counter()
            await app.run(plan, {"n": number}, timeout=60)
            if number >= WARM:
                times.append((time.perf_counter() - started) * 1000)
    quantile = statistics.quantiles(times, n=100, method="inclusive")
    more = {"p95": quantile[94], "p99": quantile[98], "min": min(times), "runs": runs}
    return Figure("apart4", "ms", quantile[49], more)


async def _abreast(ground: Ground, bench: Bench) -> Figure:
    """Tasks per second while so many calls of `run` wait at any time."""
    tasks = ground.fewer(TASKS, 20)
    async with tasker.App(bench.url, work=False) as app:
        plan, free = await app.plan(LINEAR), asyncio.Semaphore(ABREAST)

        async def one() -> None:
            async with free:
                await app.run(plan, {}, timeout=120)

        await one()
        started = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(tasks)))
        seconds = time.perf_counter() - started
    return Figure("apart_throughput", "tasks/s", tasks / seconds, {"tasks": tasks, "seconds": seconds})
