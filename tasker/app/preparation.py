"""Preparation of a database: the embedded server if no URL is given, the schema, the messaging backend."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tasker.clock import SystemClock
from tasker.db.channel import DatabaseChannel
from tasker.db.database import with_statement_timeout
from tasker.db.migrate import upgrade
from tasker.errors import UsageError
from tasker.installed import installed_backends
from tasker.messaging.backends import load_backend
from tasker.messaging.port import Backend, TransactionalBackend
from tasker.messaging.queues import QueueNames
from tasker.messaging.service import MessagingService
from tasker.process.connections import Resources, with_faults
from tasker.resilience.breakers import Breakers
from tasker.settings.addresses import DEFAULT_BACKEND, BackendSettings
from tasker.settings.database import Database

DEFAULT_DATABASE = Database()


def not_empty(database_url: str | None) -> str | None:
    """Return the URL. Raises `UsageError` for an empty one, which does not select the embedded server."""
    if database_url is not None and not database_url.strip():
        raise UsageError("database_url is empty", hint="give a URL, or leave it out for the embedded server")
    return database_url


def require_shared(backend: Backend, loss: str, hint: str = "") -> None:
    """Raise `UsageError` for a backend that other processes cannot reach; `loss` describes the consequence.

    Without a `hint`, the other installed backends are suggested.
    """
    if not backend.capabilities.shared:
        name = backend.provider_name()
        others = " or ".join(backend_name for backend_name in installed_backends() if backend_name != name)
        message = f"the {name} backend lives inside one process; {loss}"
        raise UsageError(message, hint=hint or f"name another one: {others}")


def prepare(
    database_url: str | None,
    *,
    backend: str = DEFAULT_BACKEND,
    data_dir: Path | None = None,
    names: QueueNames | None = None,
    backend_settings: BackendSettings | None = None,
    breakers: Breakers | None = None,
    database: Database = DEFAULT_DATABASE,
    waits: bool = False,
) -> Resources:
    """Start or join the embedded server unless a URL is given, and upgrade the schema.

    `backend_settings` are those of the messaging backend, `breakers` and `database` those of the process. With `waits`,
    an unreachable database is awaited for the time in `database`.

    Raises `DatabaseUnavailable`, `SchemaOutdated`, `BackendUnavailable`.
    """
    server = None
    if database_url is None:
        from tasker.db.embedded import EmbeddedServer

        server = EmbeddedServer.start(data_dir) if data_dir else EmbeddedServer.start()
        database_url = server.url
    database_url = with_statement_timeout(database_url, database.statement_timeout_ms)
    chosen = load_backend(backend, {"channel": DatabaseChannel(database_url), **(backend_settings or {})})
    _upgrade(database_url, _scripts(chosen), database.connect_wait_seconds if waits else 0.0)
    return Resources(database_url, MessagingService(_guarded(with_faults(chosen), breakers), names), server)


def _upgrade(url: str, scripts: Sequence[tuple[str, str]], wait_seconds: float) -> None:
    from tasker.db.startup_wait import with_database

    with_database(url, wait_seconds, lambda: upgrade(url, scripts))


def _guarded(backend: Backend, breakers: Breakers | None) -> Backend:
    """Return the backend with a circuit breaker, unless its messages are part of the engine's transactions."""
    if isinstance(backend, TransactionalBackend):
        return backend
    from tasker.messaging.guarded import GuardedBackend

    return GuardedBackend(backend, (breakers or Breakers(SystemClock())).messaging)


def _scripts(backend: Backend) -> list[tuple[str, str]]:
    return list(backend.install_sql()) if isinstance(backend, TransactionalBackend) else []
