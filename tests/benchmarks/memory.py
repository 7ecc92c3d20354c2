"""What processes have in memory, and whether it grows with what they have done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tests.benchmarks.conditions import Conditions, Figure
from tests.benchmarks.cpu import memory_of
from tests.benchmarks.processes import WORKFLOWS, bench

NAMES = ("memory_worker",)
STEPS, TASKS_AT_ONCE = 4, 1000
AFTER = (0, 8_000, 48_000)


def measure(conditions: Conditions, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """MiB of one `tasker worker` when it is ready, and after so many steps."""
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
