"""`make bench`: latency, throughput, memory and start-up, as a table and as JSON.

Usage: python -m tests.benchmarks.run [--database-url URL] [--backend NAME] [--json FILE] [--only NAME ...] [--quick]
The machine is shared and noisy: compare figures of one run with each other, not with those of another day.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tasker
from tasker.contracts.plan import Plan
from tasker.execution.settings import WorkerSettings
from tasker.services.submission import Request
from tests.benchmarks.shapes import SHAPES, adopt
from tests.support import brokers

RUNS = {"fan100": 30, "fan1000": 8, "batch1000": 40}
ROOT = Path(__file__).parents[2]


async def latency(app: tasker.App, plan: Plan, runs: int) -> dict[str, float]:
    """One task at a time, from submission to observed completion, warm; milliseconds."""
    times = []
    for number in range(runs + 3):
        started = time.perf_counter()
        submitted = await app.submit(plan, {"n": number}, idempotency_key=f"{plan.name}-{time.time_ns()}")
        await app.finished(submitted.task_uuid, timeout=120)
        if number >= 3:
            times.append((time.perf_counter() - started) * 1000)
    times.sort()
    quantile = statistics.quantiles(times, n=100, method="inclusive")
    return {"runs": runs, "p50": quantile[49], "p95": quantile[94], "p99": quantile[98], "min": times[0]}


async def throughput(app: tasker.App, plan: Plan, tasks: int) -> dict[str, float]:
    """Tasks submitted at once; steps per second from first submission to last completion."""
    stamp = time.time_ns()
    requests = [Request({"n": number}, idempotency_key=f"{stamp}-{number}") for number in range(tasks)]
    started = time.perf_counter()
    submitted = [item for item in await app.submit_many(plan, requests) if hasattr(item, "task_uuid")]
    await asyncio.gather(*(app.finished(item.task_uuid, timeout=300) for item in submitted))
    seconds = time.perf_counter() - started
    return {"tasks": tasks, "seconds": seconds, "steps_per_s": tasks * len(plan.steps) / seconds}


def start_up(data_dir: Path) -> dict[str, float]:
    """From the start of the process to the end of its first task, with an existing data folder; the best of three."""
    command = [
        sys.executable,
        "-m",
        "tasker",
        "run",
        str(ROOT / "workflows" / "linear_math"),
        "--json",
        "--data-dir",
        str(data_dir),
    ]
    times = []
    for _ in range(4):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return {"first": times[0], "seconds": min(times[1:])}


async def measure(url: str, only: Sequence[str], quick: bool, backend: str = "pgmq") -> dict[str, Any]:
    """All figures that need a running worker."""
    figures: dict[str, Any] = {}
    apart = brokers.engine_settings(backend)
    app = tasker.App(url, settings=WorkerSettings(concurrency=200), backend=backend, backend_settings=apart)
    async with app:
        adopt(app.registry)
        for name, plan in SHAPES.items():
            if not only or name in only:
                runs = RUNS.get(name, 100)
                figures[name] = await latency(app, plan, max(3, runs // 5) if quick else runs)
        for tasks in (1000, 5000):
            if not only or f"throughput{tasks}" in only:
                figures[f"throughput{tasks}"] = await throughput(app, SHAPES["linear4"], tasks)
        await app.stop_working()
        await brokers.remove_queues(app._ground.messaging, apart)
    figures["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures


def table(figures: dict[str, Any]) -> str:
    """The figures for people."""
    lines = [f"{'latency, ms':<14}{'p50':>9}{'p95':>9}{'p99':>9}{'min':>9}{'runs':>7}"]
    for name, row in figures.items():
        if isinstance(row, dict) and "p50" in row:
            lines.append(
                f"{name:<14}" + "".join(f"{row[k]:>9.2f}" for k in ("p50", "p95", "p99", "min")) + f"{row['runs']:>7}"
            )
    for name, row in figures.items():
        if isinstance(row, dict) and "steps_per_s" in row:
            lines.append(
                f"{name:<16}{row['steps_per_s']:>9.0f} steps/s ({row['tasks']} tasks in {row['seconds']:.2f} s)"
            )
    if "start_up" in figures:
        lines.append(
            f"{'start-up':<16}{figures['start_up']['seconds']:>9.2f} s to the end of the first task, process included"
        )
    lines.append(f"{'peak memory':<16}{figures['peak_mib']:>9.1f} MiB")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database-url")
    parser.add_argument("--backend", default="pgmq", help="a broker is found as the tests find it")
    parser.add_argument("--json", type=Path, default=ROOT / ".benchmarks" / "latest.json")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tasker-bench-") as folder:
        url, server = options.database_url, None
        if url is None:
            from tasker.db.embedded import EmbeddedServer

            server = EmbeddedServer.start(Path(folder) / "postgres", linger_seconds=2)
            url = server.url
        figures = asyncio.run(measure(url, options.only, options.quick, options.backend))
        if not options.only or "start_up" in options.only:
            figures["start_up"] = start_up(Path(folder) / "first")
        if server:
            server.stop()
    figures["machine"] = {"python": platform.python_version(), "system": platform.platform()}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(figures, indent=2))
    print(table(figures))
    print(f"written to {options.json}")


if __name__ == "__main__":
    main()
