"""Overview: current activity and problems that need an operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.services.fleet.activity import Activity, NamespaceActivity
from tasker.services.fleet.overview import Overview, Queue
from tasker.services.wording import counted, duration, number

MOST_NAMED = 5
"""Handlers that are named one by one; of more the number is told."""


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


def namespaces(found: Overview, lately: Activity) -> list[NamespaceRow]:
    """Return a row for each namespace of the page, in its order."""
    queues = {queue.namespace: queue for queue in found.queues}
    return [NamespaceRow(each, queues[each.namespace]) for each in lately.namespaces if each.namespace in queues]


def needs(found: Overview, lately: Activity) -> list[Need]:
    """Return the problems for an operator, most urgent first."""
    return [
        *_unserved(lately),
        *_unworked(found),
        *_lost(found),
        *_dead_letters(found),
        *_breakers(found),
        *_pauses(found),
    ]


def _unserved(lately: Activity) -> Iterator[Need]:
    for each in lately.unserved[:MOST_NAMED]:
        text = f"No worker has {each.callable}: {counted(each.steps, 'step')} waiting in {each.namespace}"
        yield Need(text, "deploy the handler, or correct its name in the template", "fleet", {})
    if (more := len(lately.unserved) - MOST_NAMED) > 0:
        yield Need(f"{counted(more, 'more handler')} that no worker has", "deploy them", "fleet", {})


def _unworked(found: Overview) -> Iterator[Need]:
    for queue in found.unworked_queues:
        text = f"{queue.namespace}: {counted(queue.enqueued + queue.held, 'step')} in the queue, and no live worker"
        yield Need(text, "start a worker: tasker worker", "tasks", {"namespace": queue.namespace})
    if (more := found.unworked - len(found.unworked_queues)) > 0:
        text = f"{counted(more, 'more namespace')} with steps in the queue, and no live worker"
        yield Need(text, "start workers that serve them: tasker worker", "fleet", {})


def _lost(found: Overview) -> Iterator[Need]:
    lost = [each for each in found.processes if each.state == "lost"]
    if lost:
        text = f"{len(lost)} {'process' if len(lost) == 1 else 'processes'} without a heartbeat"
        yield Need(text, "their steps are released automatically; check why they ended", "fleet", {}, urgent=False)


def _dead_letters(found: Overview) -> Iterator[Need]:
    if found.dead_letters:
        text = f"{counted(found.dead_letters, 'dead letter')} to look into"
        yield Need(text, "find the cause, then replay or resolve", "dead-letters", {})


def _breakers(found: Overview) -> Iterator[Need]:
    for each in found.breakers:
        text = f"The breaker of {each.breaker} is open: {counted(each.steps, 'step')} deferred"
        yield Need(text, "it retries automatically; check the service that it calls", "fleet", {}, urgent=False)


def _pauses(found: Overview) -> Iterator[Need]:
    if found.pauses:
        yield Need(f"{counted(found.pauses, 'pause')} active", "resume them when ready", "fleet", {}, urgent=False)


@dataclass(frozen=True, slots=True)
class Figure:
    """Figure with its name and a note."""

    name: str
    value: str
    note: str = ""


def span(lately: Activity) -> str:
    """Return the time shown, worded to follow "the last"."""
    return "hour" if lately.seconds >= 3600 else duration(1000 * round(lately.seconds))


def figures(found: Overview, lately: Activity) -> Sequence[Figure]:
    """Return the main figures of the fleet."""
    live = [each for each in found.processes if each.state == "live" and each.kind == "worker"]
    slots, busy = sum(each.slots for each in live), sum(each.in_hand for each in live)
    wait = "none" if lately.wait_p50_ms is None else duration(lately.wait_p50_ms)
    slow = "" if lately.wait_p95_ms is None else f"95 of 100 within {duration(lately.wait_p95_ms)}"
    return (
        Figure("open tasks", number(found.open), f"{number(found.submitted)} submitted in the last minute"),
        Figure(
            "steps a second",
            f"{lately.steps_per_second:,.2f}",
            f"{number(lately.steps_ended)} in the last {span(lately)}",
        ),
        Figure("wait in the queue", wait, slow),
        Figure("workers", str(len(live)), f"{number(busy)} of {number(slots)} slots in use"),
        Figure("failed attempts", number(found.failed_attempts), "in the last minute"),
        Figure("retries due", number(lately.retries_due), "within the next hour"),
    )
