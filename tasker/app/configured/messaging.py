"""Messaging settings of a process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tasker.messaging.queues import QueueNames
from tasker.settings.addresses import BackendSettings

if TYPE_CHECKING:
    from tasker.settings.model import Settings
    from tasker.settings.table import Table


def queue_names(settings: Settings) -> QueueNames:
    queues = settings.common.queues.orchestration_queues
    return QueueNames(queues.task_requests, queues.step_results, queues.task_finalizations)


def backend_settings(settings: Settings, others: Mapping[str, BackendSettings]) -> dict[str, BackendSettings]:
    """Return the settings that are set for each backend; others are the backend's own defaults.

    `others` are backends without a model. The engine reads settings that override common ones; they are not passed to
    the backend.
    """
    tables = settings.common.queues.tables()
    known = {name: values for name, table in tables.items() if (values := _told(table))}
    return {**known, **others}


def _told(table: Table) -> BackendSettings:
    from tasker.settings.installed_tables import overruling
    from tasker.settings.nested import leaves, nested

    read_here = overruling(type(table))
    entries = leaves(table.to_dict(only_set=True))
    return nested({path: value for path, value in entries if path not in read_here})
