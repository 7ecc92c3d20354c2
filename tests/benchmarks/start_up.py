"""How long processes take from their start to the end of their first task."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.conditions import ROOT, Conditions, Figure
from tests.benchmarks.cpu import seconds_of
from tests.benchmarks.processes import WORKFLOWS, Bench, bench

EXAMPLES = ("csv_inventory", "diamond", "linear_math", "mixed_dag", "order_fulfillment", "tree")
TEMPLATES: Mapping[str, Sequence[Path]] = {
    "start_up_worker": (),
    "start_up_worker7": [ROOT / "workflows" / name for name in EXAMPLES],
}
"""What a worker has beside the template of its first task."""
NAMES = ("start_up", *TEMPLATES, "start_up_help")
RUNS = 6


def measure(conditions: Conditions, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """Seconds, the best of some; `first` is the one that found nothing yet."""
    for name in names:
        tell(name)
        if name == "start_up":
            yield _figure(name, [_run(conditions.folder / "first") for _ in range(_runs(conditions))])
        elif name == "start_up_help":
            yield _figure(name, [_tasker("--help") for _ in range(_runs(conditions))])
        else:
            with bench(conditions, name, "pgmq", None) as fleet:
                yield _figure(name, [_worker(fleet, TEMPLATES[name], n) for n in range(_runs(conditions))])


def _runs(conditions: Conditions) -> int:
    return max(2, conditions.fewer(RUNS, 2))


def _figure(name: str, times: Sequence[tuple[float, float]]) -> Figure:
    seconds, cpu = min(times[1:]), min(spent for _, spent in times[1:])
    return Figure(name, "s", seconds[0], {"first": times[0][0], "cpu": cpu})


def _run(data_dir: Path) -> tuple[float, float]:
    """`tasker run` with a data folder that exists, but for the first time."""
    return _tasker("run", ROOT / "workflows" / "linear_math", "--json", "--data-dir", data_dir)


def _tasker(*arguments: Any) -> tuple[float, float]:
    started, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, "-m", "tasker", *arguments], check=True, capture_output=True)
    seconds, after = time.perf_counter() - started, os.times()
    return seconds, sum(after[2:4]) - sum(before[2:4])


def _worker(bench: Bench, more: Sequence[Path], number: int) -> tuple[float, float]:
    """A worker that finds a task which has waited for it."""
    task = bench.submit("linear", 1, n=number)
    started, name = time.time(), f"worker{number}"
    bench.fleet.worker(name, str(WORKFLOWS / "linear"), *map(str, more), lease=15)
    bench.finish(task)
    ended = bench.value("select extract(epoch from completed_at) from tasker.tasks where task_uuid = %s", task[0])
    cpu = seconds_of(bench.fleet.processes[name].pid)
    bench.end(name)
    return float(ended) - started, cpu
