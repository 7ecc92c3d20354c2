"""Queues with the figures of the database, the broker and the workers."""

from __future__ import annotations

from collections.abc import Sequence

from tasker.contracts.dataclasses import dataclass
from tasker.services.fleet.brokers import BrokerReport, QueueReport
from tasker.services.fleet.overview import Overview, Queue
from tasker.services.fleet.scaling import ScalingAdvice
from tasker.services.listings import Pause

KINDS = ("namespace", "template", "step", "task", "queue")
"""Kinds of targets that can be paused."""


@dataclass(frozen=True, slots=True)
class QueueRow:
    """Queue of a namespace; `message_queue` is that of the provider, None if the provider is not reachable."""

    queue: Queue
    advice: ScalingAdvice | None
    message_queue: QueueReport | None


def queues(found: Overview, advice: Sequence[ScalingAdvice], broker: BrokerReport | None) -> list[QueueRow]:
    """Return a row for each namespace of the page, the fullest first."""
    by_namespace = {each.namespace: each for each in advice}
    messages = {each.queue: each for each in broker.queues} if broker else {}
    return [
        QueueRow(each, by_namespace.get(each.namespace), messages.get(f"worker_{each.namespace}_queue"))
        for each in found.queues
    ]


def target_fields(pause: Pause) -> dict[str, str]:
    """Return the form fields that end this pause."""
    if pause.queue:
        return {"what": "queue", "name": pause.queue}
    if pause.task:
        return {"what": "task", "name": pause.task}
    parts = [part for part in (pause.namespace, pause.template, pause.step) if part]
    return {"what": ("namespace", "template", "step")[len(parts) - 1], "name": "/".join(parts)}


def command_of(pause: Pause) -> str:
    """Return the command that ends this pause."""
    fields = target_fields(pause)
    option = "" if fields["what"] == "namespace" else f"--{fields['what']} "
    return f"tasker resume {option}{fields['name']}"
