"""How throughput grows with the number of worker processes: on each backend, over both result paths."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from tests.benchmarks.conditions import Conditions, Figure
from tests.benchmarks.processes import BACKENDS, WORKFLOWS, Bench, bench, broker_of

NAMES = tuple(f"scaling-{backend}" for backend in BACKENDS)
PATHS = ("inline", "queued")
ORCHESTRATORS = 2
WORKERS = (1, 2, 4)
TASKS, STEPS, RUNS, WARM = 1000, 4, 3, 50
BATCH_SECONDS = 5.0
"""A slow fleet gets smaller batches, which take about so long."""


def measure(conditions: Conditions, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """Steps per second for each backend, path and number of workers; ratios are to one worker of the same fleet."""
    for backend in BACKENDS:
        if f"scaling-{backend}" in names:
            with broker_of(backend) as broker:
                for path in PATHS:
                    name = f"{backend}_{path}"
                    with bench(conditions, name, backend, broker) as fleet:
                        yield from _grow(conditions, fleet, path, tell)


def _grow(conditions: Conditions, bench: Bench, path: str, tell: Callable[[str], None]) -> Iterator[Figure]:
    """One fleet, to which workers are added."""
    for number in range(0 if path == "inline" else 1 if conditions.size > 1 else ORCHESTRATORS):
        bench.fleet.orchestrator(f"orchestrator{number}")
    first = None
    for workers in _counts(conditions):
        tell(f"{bench.backend}, {path}, workers: {workers}")
        while (number := sum(name.startswith("worker") for name in bench.fleet.processes)) < workers:
            bench.fleet.worker(f"worker{number}", str(WORKFLOWS / "linear"), "--result-path", path, lease=15)
        figure = _throughput(conditions, bench, path, workers)
        first = first or figure.value
        yield replace(figure, ratio=figure.value / first)
    if path == "queued" and conditions.size == 1:
        tell(f"{bench.backend}, {path}, workers: {workers}, one orchestrator")
        bench.end("orchestrator1")
        figure = _throughput(conditions, bench, path, workers)
        yield replace(figure, name=f"{figure.name}, 1 orchestrator", ratio=figure.value / (first or figure.value))


def _counts(conditions: Conditions) -> tuple[int, ...]:
    if conditions.size > 1:
        return WORKERS[:1]
    return WORKERS[:2] if conditions.quick else WORKERS


def _throughput(conditions: Conditions, bench: Bench, path: str, workers: int) -> Figure:
    warm = conditions.fewer(WARM, 5)
    pace = warm / bench.finish(bench.submit("linear", warm))
    tasks = min(conditions.fewer(TASKS, 20), max(20, round(pace * BATCH_SECONDS)))
    before = bench.cpu()
    times = [bench.finish(bench.submit("linear", tasks)) for _ in range(1 if conditions.quick else RUNS)]
    after = bench.cpu()
    rates = [tasks * STEPS / seconds for seconds in times]
    cpu = {name: (after[name] - before[name]) / sum(times) for name in after}
    microseconds = sum(times) * 1e6 / (tasks * STEPS * len(times))
    each = {
        "python_us": (cpu["workers"] + cpu["orchestrators"]) * microseconds,
        "postgresql_us": cpu["postgresql"] * microseconds,
    }
    labels = {"backend": bench.backend, "path": path, "workers": workers, "tasks": tasks, "rates": rates, "cpu": cpu}
    return Figure(f"{bench.backend}, {path}, {workers}", "steps/s", statistics.median(rates), labels | each, "scaling")
