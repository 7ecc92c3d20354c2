"""What messaging is made with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tasker.contracts.messaging import BackendSettings
from tasker.messaging.queues import QueueNames

if TYPE_CHECKING:
    from tasker.settings.model import Settings


def queue_names(settings: Settings) -> QueueNames:
    """The names of the orchestration's queues."""
    queues = settings.common.queues.orchestration_queues
    return QueueNames(queues.task_requests, queues.step_results, queues.task_finalizations)


def backend_settings(settings: Settings, others: Mapping[str, BackendSettings]) -> dict[str, BackendSettings]:
    """By backend what is set about it: the rest is the backend's own default. `others` are those without a model."""
    queues = settings.common.queues
    tables = {"rabbitmq": queues.rabbitmq, "redis": queues.redis, "nats": queues.nats}
    known = {name: given for name, table in tables.items() if (given := table.model_dump(exclude_unset=True))}
    return {**known, **others}
