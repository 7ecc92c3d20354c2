"""Figures and charts of the first page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasker.dataclasses import dataclass
from tasker.services.fleet.overview import Activity, NamespaceActivity, Overview, Queue
from tasker.services.wording import counted, duration, number

MOST_NAMED = 5
"""Number of handlers listed by name; the others are only counted."""


@dataclass(frozen=True, slots=True)
class Need:
    """Problem for an operator; `path` and `query` address the page that shows it."""

    text: str
    hint: str
    path: str
    query: dict[str, Any]
    urgent: bool = True


@dataclass(frozen=True, slots=True)
class NamespaceRow:
    """Namespace with its tasks and its queue."""

    activity: NamespaceActivity
    queue: Queue

    @property
    def failed(self) -> int:
        """Number of tasks that failed in the time shown."""
        return sum(self.activity.failed)

    @property
    def stands_still(self) -> bool:
        """True if steps wait and no process serves the namespace."""
        return self.queue.processes == 0 and self.queue.enqueued + self.queue.held > 0


def namespaces(overview: Overview, lately: Activity) -> list[NamespaceRow]:
    """Return a row for each namespace of the page, in its order."""
    queues = {queue.namespace: queue for queue in overview.queues}
    return [
        NamespaceRow(activity, queues[activity.namespace])
        for activity in lately.namespaces
        if activity.namespace in queues
    ]


def needs(overview: Overview, lately: Activity) -> list[Need]:
    """Return the problems for an operator, most urgent first."""
    return [
        *_unserved(lately),
        *_unworked(overview),
        *_lost(overview),
        *_dead_letters(overview),
        *_breakers(overview),
        *_pauses(overview),
    ]


def _unserved(lately: Activity) -> Iterator[Need]:
    for handler in lately.unserved[:MOST_NAMED]:
        text = f"No worker has {handler.callable}: {counted(handler.steps, 'step')} waiting in {handler.namespace}"
        yield Need(text, "deploy the handler, or correct its name in the template", "fleet", {})
    if (more := len(lately.unserved) - MOST_NAMED) > 0:
        yield Need(f"{counted(more, 'more handler')} that no worker has", "deploy them", "fleet", {})


def _unworked(overview: Overview) -> Iterator[Need]:
    for queue in overview.unworked_queues:
        text = f"{queue.namespace}: {counted(queue.enqueued + queue.held, 'step')} in the queue, and no live worker"
        yield Need(text, "start a worker: tasker worker", "tasks", {"namespace": queue.namespace})
    if (more := overview.unworked - len(overview.unworked_queues)) > 0:
        text = f"{counted(more, 'more namespace')} with steps in the queue, and no live worker"
        yield Need(text, "start workers that serve them: tasker worker", "fleet", {})


def _lost(overview: Overview) -> Iterator[Need]:
    lost = [process for process in overview.processes if process.state == "lost"]
    if lost:
        text = f"{len(lost)} {'process' if len(lost) == 1 else 'processes'} without a heartbeat"
        yield Need(text, "their steps are released automatically; check why they ended", "fleet", {}, urgent=False)


def _dead_letters(overview: Overview) -> Iterator[Need]:
    if overview.dead_letters:
        text = f"{counted(overview.dead_letters, 'dead letter')} to resolve"
        yield Need(text, "find the cause, then replay or resolve", "dead-letters", {})


def _breakers(overview: Overview) -> Iterator[Need]:
    for breaker in overview.breakers:
        text = f"The breaker of {breaker.breaker} is open: {counted(breaker.steps, 'step')} deferred"
        yield Need(text, "it retries automatically; check the service that it calls", "fleet", {}, urgent=False)


def _pauses(overview: Overview) -> Iterator[Need]:
    if overview.pauses:
        yield Need(f"{counted(overview.pauses, 'pause')} active", "resume them when ready", "fleet", {}, urgent=False)


@dataclass(frozen=True, slots=True)
class Figure:
    """Figure with its name and a note."""

    name: str
    value: str
    note: str = ""


def span(lately: Activity) -> str:
    """Return the time shown, worded to follow "the last"."""
    return "hour" if lately.seconds >= 3600 else duration(1000 * round(lately.seconds))


def figures(overview: Overview, lately: Activity) -> Sequence[Figure]:
    """Return the main figures of the fleet."""
    live = [process for process in overview.processes if process.state == "live" and process.kind == "worker"]
    slots, busy = sum(worker.slots for worker in live), sum(worker.in_hand for worker in live)
    wait = "none" if lately.wait_p50_ms is None else duration(lately.wait_p50_ms)
    slow = "" if lately.wait_p95_ms is None else f"p95 {duration(lately.wait_p95_ms)}"
    return (
        Figure("open tasks", number(overview.open), f"{number(overview.submitted)} submitted in the last minute"),
        Figure(
            "steps a second",
            f"{lately.steps_per_second:,.2f}",
            f"{number(lately.steps_ended)} in the last {span(lately)}",
        ),
        Figure("wait in the queue", wait, slow),
        Figure("workers", str(len(live)), f"{number(busy)} of {number(slots)} slots in use"),
        Figure("failed attempts", number(overview.failed_attempts), "in the last minute"),
        Figure("retries due", number(lately.retries_due), "within the next hour"),
    )


@dataclass(frozen=True, slots=True)
class ChartLine:
    """Line of a chart: its style class and a number per slice."""

    look: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Chart:
    """Chart as the server draws it; `words` describe its content in a sentence."""

    kind: str
    title: str
    words: str
    lines: Sequence[ChartLine]

    @property
    def highest(self) -> float:
        return max((value for line in self.lines for value in line.values), default=0)


@dataclass(frozen=True, slots=True)
class Charts:
    """Charts of a page; `data` has the start times of the slices (seconds since 1970) and the rows of each chart."""

    data: Mapping[str, Any]
    charts: Sequence[Chart]


def charts_of(lately: Activity) -> Charts:
    """Return charts of tasks per minute and of how long steps waited in the queue."""
    slice_seconds = lately.seconds / lately.slices
    began = lately.at.timestamp() - lately.seconds
    moments = [round(began + place * slice_seconds) for place in range(lately.slices)]
    tasks = [
        [round(60 * count / slice_seconds, 3) for count in counts]
        for counts in (lately.submitted, lately.ended, lately.failed)
    ]
    waits = [list(lately.waits_p50_ms), list(lately.waits_p95_ms)]
    return Charts({"moments": moments, "tasks": tasks, "waits": waits}, [_tasks(lately, tasks), _waits(lately, waits)])


def _tasks(lately: Activity, rows: Sequence[Sequence[float]]) -> Chart:
    sums = [number(sum(counts)) for counts in (lately.submitted, lately.ended, lately.failed)]
    words = f"{sums[0]} submitted, {sums[1]} ended, {sums[2]} of them failed"
    lines = zip(("runs", "done", "failed"), rows, strict=True)
    return Chart("tasks", "Tasks a minute", words, [ChartLine(*line) for line in lines])


def _waits(lately: Activity, rows: Sequence[Sequence[float | None]]) -> Chart:
    words = "no step has waited"
    if lately.wait_p50_ms is not None and lately.wait_p95_ms is not None:
        words = f"median {duration(lately.wait_p50_ms)}, p95 {duration(lately.wait_p95_ms)}"
    lines = zip(("runs", "retries"), ([value or 0.0 for value in row] for row in rows), strict=True)
    return Chart("waits", "Wait in the queue", words, [ChartLine(*line) for line in lines])


WIDTH, HEIGHT, MARGIN = 120, 24, 2


def points(values: Sequence[float], highest: float | None = None) -> str:
    """Return the points of an SVG polyline of `WIDTH` by `HEIGHT`; `highest` is the value at the top."""
    top = max(highest if highest is not None else max(values, default=0), 1)
    step = WIDTH / max(1, len(values) - 1)
    return " ".join(f"{place * step:.1f},{_height(value / top):.1f}" for place, value in enumerate(values))


def _height(share: float) -> float:
    return HEIGHT - MARGIN - min(1.0, share) * (HEIGHT - 2 * MARGIN)
