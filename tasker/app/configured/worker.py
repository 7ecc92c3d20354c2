"""Settings of a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.app.configured.engine import rules
from tasker.app.configured.events import worker_events
from tasker.execution.settings import WorkerSettings

if TYPE_CHECKING:
    from tasker.settings.model import Settings


def worker_settings(settings: Settings) -> WorkerSettings:
    """Return the tables that a worker reads."""
    common, worker = settings.common, settings.worker
    return WorkerSettings(
        dispatch=worker.mpsc_channels.handler_dispatch,
        hand_off=worker.mpsc_channels.ffi_dispatch,
        execution=worker.execution,
        lease=worker.lease,
        limits=common.execution,
        overflow=common.mpsc_channels.overflow_policy,
        domain_events=worker.mpsc_channels.domain_events,
        subscribers=worker.mpsc_channels.in_process_events,
        seen_events=worker.event_systems.worker.metadata.in_process_events,
        events=worker_events(settings),
        rules=rules(settings),
        name=worker.worker_id if worker.is_set("worker_id") else None,
    )
