"""What plugins cost: the same tasks without any, with each of them, and with all that hear of steps, in turns."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.plugins.found import PluginChoice
from tasker.settings.table import Table
from tasker_otel.table import OtelTable
from tasker_sentry.table import SentryTable
from tasker_webhooks.signing import new_secret
from tasker_webhooks.table import Endpoint, WebhooksTable
from tests.benchmarks.conditions import Conditions, Figure
from tests.benchmarks.one_process import SETTINGS, throughput_of
from tests.benchmarks.shapes import NOOP, SHAPES, adopt, compiled
from tests.support.servers import brokers
from tests.support.servers.sink import sink

EVENTS = """
name: events4
namespace_name: bench
version: "1.0.0"
steps:
"""
EVENTS += "".join(
    f"  - {{name: {step}, handler: {NOOP}, dependencies: [{above}], publishes_events: [{{name: bench.{step}}}]}}\n"
    for step, above in zip("abcd", ("", *"abc"), strict=True)
)


@dataclass(frozen=True)
class Subject:
    """These plugins; `beside` is what has the same tasks without them, which publish `events` or not."""

    plugins: Sequence[str] = ()
    beside: str = "telemetry_none"
    events: bool = False


SUBJECTS: Mapping[str, Subject] = {
    "telemetry_none": Subject(),
    "telemetry_logs": Subject(["logs"]),
    "telemetry_prometheus": Subject(["prometheus"]),
    "telemetry_otel": Subject(["otel"]),
    "telemetry_sentry": Subject(["sentry"]),
    "telemetry_all": Subject(["logs", "prometheus", "otel", "sentry"]),
    "telemetry_events": Subject(events=True),
    "telemetry_webhooks": Subject(["webhooks"], "telemetry_events", events=True),
}
NAMES = tuple(SUBJECTS)
ROUNDS, WARM = 5, 200
LOOK_SECONDS = 0.2
"""After so long it is asked again whether all events were posted."""


@dataclass(frozen=True)
class Receivers:
    """Where spans go, and the port that takes everything else."""

    spans: str
    port: int

    def settings(self) -> dict[str, Table]:
        """Those of the plugins that send. Each round has a new endpoint, which begins with what comes then."""
        endpoint = Endpoint(name=f"bench{time.time_ns()}", url=f"http://127.0.0.1:{self.port}", secrets=(new_secret(),))
        return {
            "otel": OtelTable(endpoint=self.spans),
            "sentry": SentryTable(dsn=f"http://key@127.0.0.1:{self.port}/1"),
            "webhooks": WebhooksTable(endpoints=(endpoint,), plain_http=True, private_networks=("127.0.0.0/8",)),
        }


def measure(conditions: Conditions, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """The medians of each, and what it has beside its like without plugins in the same round."""
    found: dict[str, list[Figure]] = {name: [] for name in names}
    with _span_receiver() as spans, sink() as port, _journal_in(conditions.folder):
        for number in range(1 if conditions.quick else ROUNDS):
            for name in _turn([*names], number):
                tell(f"{name}, round {number + 1}")
                found[name].append(asyncio.run(_round(conditions, name, Receivers(spans, port))))
    first = next(iter(found.values()))
    yield from (_median(name, figures, found.get(SUBJECTS[name].beside, first)) for name, figures in found.items())


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


async def _round(conditions: Conditions, name: str, receivers: Receivers) -> Figure:
    """A thousand tasks, warm; what plugins had to drop would make them look cheap."""
    subject = SUBJECTS[name]
    choice = PluginChoice(enabled=tuple(subject.plugins), settings=receivers.settings())
    chosen = replace(UNCONFIGURED, plugins=choice)
    apart = brokers.engine_settings(conditions.backend)
    options = {
        "settings": SETTINGS[""],
        "configuration": chosen,
        "backend": conditions.backend,
        "backend_settings": apart,
    }
    plan = compiled(EVENTS) if subject.events else SHAPES["linear4"]()
    async with tasker.App(conditions.url, **options) as app:  # type: ignore[arg-type]
        adopt(app.registry)
        posted = partial(_posted, app) if "webhooks" in subject.plugins else None
        if posted:
            await posted()
        await throughput_of(app, plan, conditions.fewer(WARM, 5), conditions, posted)
        figure = await throughput_of(app, plan, conditions.fewer(1000, 10), conditions, posted)
        states = app._plugins.states()
        assert [state.name for state in states if state.off or state.failures] == [], states
        assert {state.name for state in states} == {*subject.plugins}
        assert all(state.delivered for state in states if state.name != "webhooks"), "they heard of the steps"
        dropped = sum(state.dropped for state in states)
        assert not posted or await app.domain_events.deliveries.list() == [], "an endpoint took every event"
        await app.stop_working()
        await brokers.remove_queues(app._resources.messaging, apart)
    return replace(figure, name=name, more={**figure.more, "dropped": dropped})


async def _posted(app: tasker.App) -> None:
    """Return when somebody posts events, and has posted all there are."""
    last = (await app.domain_events.page(limit=1, newest=True)).last
    while not any(each.active and each.position >= last for each in await app.domain_events.subscribers()):
        await asyncio.sleep(LOOK_SECONDS)


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
