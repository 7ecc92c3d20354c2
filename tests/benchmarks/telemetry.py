"""What plugins cost: the same tasks without any, with each that tells of every step, and with all, in turns."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.plugins.choice import PluginChoice
from tasker_otel.table import OtelTable
from tests.benchmarks.conditions import Conditions, Figure
from tests.benchmarks.one_process import SETTINGS, throughput
from tests.benchmarks.shapes import adopt
from tests.support.servers import brokers

PLUGINS: Mapping[str, Sequence[str]] = {
    "telemetry_none": (),
    "telemetry_logs": ("logs",),
    "telemetry_prometheus": ("prometheus",),
    "telemetry_otel": ("otel",),
    "telemetry_all": ("logs", "prometheus", "otel"),
}
NAMES = tuple(PLUGINS)
ROUNDS, WARM = 5, 200


def measure(conditions: Conditions, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """The medians of each, and what it has beside the first of the same round."""
    found: dict[str, list[Figure]] = {name: [] for name in names}
    with _span_receiver() as endpoint, _journal_in(conditions.folder):
        for number in range(1 if conditions.quick else ROUNDS):
            for name in _turn([*names], number):
                tell(f"{name}, round {number + 1}")
                found[name].append(asyncio.run(_round(conditions, name, endpoint)))
    first = next(iter(found.values()))
    yield from (_median(name, figures, first) for name, figures in found.items())


def _turn(names: list[str], number: int) -> list[str]:
    """Each round begins with another one: what comes first or last is never the same."""
    start = number % len(names)
    return names[start:] + names[:start]


def _median(name: str, figures: Sequence[Figure], first: Sequence[Figure]) -> Figure:
    rates = [each.value / beside.value for each, beside in zip(figures, first, strict=True)]
    cpu = [_cpu(each) / _cpu(beside) for each, beside in zip(figures, first, strict=True)]
    more = {key: statistics.median(each.more[key] for each in figures) for key in figures[0].more}
    more |= {"rates": rates, "cpu_ratio": statistics.median(cpu)}
    rate = statistics.median(each.value for each in figures)
    return Figure(name, "steps/s", rate, more, "telemetry", ratio=statistics.median(rates))


def _cpu(figure: Figure) -> float:
    return float(figure.more["python_us"] + figure.more["postgresql_us"]) or 1.0


async def _round(conditions: Conditions, name: str, endpoint: str) -> Figure:
    """A thousand tasks, warm; what plugins had to drop would make them look cheap."""
    choice = PluginChoice(enabled=tuple(PLUGINS[name]), settings={"otel": OtelTable(endpoint=endpoint)})
    chosen = replace(UNCONFIGURED, plugins=choice)
    apart = brokers.engine_settings(conditions.backend)
    options = {
        "settings": SETTINGS[""],
        "configuration": chosen,
        "backend": conditions.backend,
        "backend_settings": apart,
    }
    async with tasker.App(conditions.url, **options) as app:  # type: ignore[arg-type]
        adopt(app.registry)
        await throughput(app, "linear4", conditions.fewer(WARM, 5), conditions)
        figure = await throughput(app, "linear4", conditions.fewer(1000, 10), conditions)
        dropped = sum(state.dropped for state in app._plugins.states())
        await app.stop_working()
        await brokers.remove_queues(app._resources.messaging, apart)
    return replace(figure, name=name, more={**figure.more, "dropped": dropped})


@contextmanager
def _span_receiver() -> Iterator[str]:
    """The endpoint of a receiver, in a process of its own, that throws everything away."""
    command = [sys.executable, "-m", "tests.support.servers.span_receiver"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout
        assert receiver.stdin
        yield receiver.stdout.readline().strip()
        receiver.stdin.close()


@contextmanager
def _journal_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
