"""Assembly of a program's waiting for tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.engine.guarded_connection import GuardedConnection
from tasker.messaging.listening_modes import EventSettings
from tasker.services.tasks.end_listeners import OwnListener, WorkerListener
from tasker.services.tasks.waiting import Waiters

if TYPE_CHECKING:
    from tasker.process.runtime import Runtime


def program_waiters(
    identity: str, connection: GuardedConnection, url: str, events: EventSettings, runtime: Runtime | None
) -> Waiters:
    """Return this program's waiters, notified of ended tasks under `identity`, by its worker's listener if any."""
    if runtime is not None:
        return Waiters(connection.watch, identity, lambda _: WorkerListener(lambda: runtime.is_listening), watches=True)
    return Waiters(
        connection.watch,
        identity,
        lambda heard: OwnListener(url, identity, events, connection.watch, heard=heard),
        watches=False,
    )
