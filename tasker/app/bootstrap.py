"""From nothing to a database that is ready: the embedded server when no URL is given, the schema, the backend."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tasker.app.system import SystemClock
from tasker.contracts.messaging import Backend, BackendSettings, TransactionalBackend
from tasker.contracts.plan import BreakerPolicy
from tasker.db.channel import DatabaseChannel
from tasker.db.migrate import upgrade
from tasker.messaging.queues import QueueNames
from tasker.messaging.registry import load_backend
from tasker.messaging.service import MessagingService

if TYPE_CHECKING:
    from tasker.db.embedded import EmbeddedServer

DEFAULT_BACKEND = "pgmq"


@dataclass(slots=True)
class Ground:
    """What everything stands on: the database's URL, the messaging service, and the server if it is ours."""

    url: str
    messaging: MessagingService
    server: EmbeddedServer | None = None

    async def open(self) -> None:
        """Connect the messaging backend; one whose queues live in the database connects when it is used."""
        if not self.messaging.capabilities.transactional:
            await self.messaging.open()

    def close(self) -> None:
        """Let go of the embedded server; it stops when nobody uses it."""
        if self.server is not None:
            self.server.stop()
            self.server = None


def prepare(
    database_url: str | None,
    *,
    backend: str = DEFAULT_BACKEND,
    data_dir: Path | None = None,
    names: QueueNames | None = None,
    backend_settings: BackendSettings | None = None,
    breaker: BreakerPolicy | None = None,
) -> Ground:
    """Start or join the embedded server unless a URL is given, and bring the schema up to date.

    `backend_settings` are those of the messaging backend, `breaker` is when its circuit breaker opens.

    Raises `DatabaseUnavailable`, `SchemaOutdated`, `BackendUnavailable`.
    """
    server = None
    if database_url is None:
        from tasker.db.embedded import EmbeddedServer

        server = EmbeddedServer.start(data_dir) if data_dir else EmbeddedServer.start()
        database_url = server.url
    chosen = load_backend(backend, {"channel": DatabaseChannel(database_url), **(backend_settings or {})})
    upgrade(database_url, _scripts(chosen))
    return Ground(database_url, MessagingService(_guarded(_with_chaos(chosen), breaker), names), server)


def _with_chaos(backend: Backend) -> Backend:
    """The backend with the faults that `TASKER_CHAOS` asks for."""
    if not (asked := os.environ.get("TASKER_CHAOS")):
        return backend
    from tasker.messaging.chaos import ChaosBackend, Faults

    return ChaosBackend(backend, Faults.parse(asked))


def _guarded(backend: Backend, policy: BreakerPolicy | None) -> Backend:
    """The backend with a circuit breaker, unless its messages are part of the engine's transactions."""
    if isinstance(backend, TransactionalBackend):
        return backend
    from tasker.messaging.guarded import GuardedBackend

    return GuardedBackend(backend, SystemClock(), policy)


def _scripts(backend: Backend) -> list[tuple[str, str]]:
    return list(backend.install_sql()) if isinstance(backend, TransactionalBackend) else []
