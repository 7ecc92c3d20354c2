"""What processes have in memory, and whether it grows with what they have done."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping

import tasker
from tests.benchmarks.conditions import ROOT, Conditions, Figure
from tests.benchmarks.cpu import memory_of
from tests.benchmarks.processes import WORKFLOWS, bench

NAMES = ("memory_worker", "memory_app")
STEPS, TASKS_AT_ONCE = 4, 1000
AFTER = (0, 8_000, 48_000)
AT_ONCE = (1, TASKS_AT_ONCE, TASKS_AT_ONCE, TASKS_AT_ONCE)
"""Tasks that a program submits, one number after the other."""


def measure(conditions: Conditions, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """MiB of one `tasker worker`, and of a program that runs its tasks itself."""
    ways = {"memory_worker": _worker, "memory_app": _app}
    for name in names:
        yield from ways[name](conditions, tell)


def _worker(conditions: Conditions, tell: Callable[[str], None]) -> Iterator[Figure]:
    """When it is ready, and after so many steps."""
    with bench(conditions, "memory", "pgmq", None) as fleet:
        fleet.fleet.worker("worker0", str(WORKFLOWS / "linear"), lease=15)
        done = 0
        for steps in AFTER:
            tell(f"memory_worker, after {steps} steps")
            while done < conditions.fewer(steps // STEPS, 0):
                tasks = min(TASKS_AT_ONCE, conditions.fewer(steps // STEPS, 0) - done)
                fleet.finish(fleet.submit("linear", tasks))
                done += tasks
            used = memory_of(fleet.fleet.processes["worker0"].pid)
            yield Figure(f"memory_worker, {done * STEPS} steps", "mib", used)


def _app(conditions: Conditions, tell: Callable[[str], None]) -> Iterator[Figure]:
    """After its first task, and after so many at once; the schema is there before."""
    tell("memory_app")
    tasks = [str(conditions.fewer(number, 1)) for number in AT_ONCE]
    with conditions.database("bench_memory_app") as url:
        command = [sys.executable, "-m", "tests.benchmarks.memory", url, *tasks]
        printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    for line in printed.splitlines():
        steps, used = line.split()
        yield Figure(f"memory_app, {steps} steps", "mib", float(used))


async def _program(url: str, *tasks: str) -> None:
    done = 0
    async with tasker.App(url) as app:
        for number in map(int, tasks):
            submitted = await app.submit_many(WORKFLOWS / "linear", [{"n": done + each} for each in range(number)])
            reports = await asyncio.gather(*(app.wait(task.task_uuid or "") for task in submitted))
            assert [report.status for report in reports] == ["complete"] * number
            del reports
            done += number
            print(done * STEPS, memory_of("self"))


if __name__ == "__main__":
    asyncio.run(_program(*sys.argv[1:]))
