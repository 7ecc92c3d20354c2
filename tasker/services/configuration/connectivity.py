"""Check whether the servers named by a configuration can be reached (`tasker config validate --check-connectivity`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from tasker.dataclasses import dataclass
from tasker.db.channel import DatabaseChannel
from tasker.db.database import connect, describe_url
from tasker.errors import TaskerError
from tasker.messaging.backends import load_backend
from tasker.messaging.port import Backend
from tasker.settings.addresses import BackendSettings


@dataclass(frozen=True, slots=True)
class ConnectivityResult:
    """Result of one attempt: `what` was tried, and the `reason` of a failure, or None."""

    what: str
    reason: str | None = None


def connectivity(
    database_url: str | None, listen_url: str | None, backend: str, backend_settings: BackendSettings
) -> Iterator[ConnectivityResult]:
    """Try the database, the listen URL if it is another one, and the messaging backend.

    Nothing is created. The embedded server (no `database_url`) is not tried: it is started when needed.
    """
    database = _database("database", database_url) if database_url else None
    if database:
        yield database
    if listen_url:
        yield _database("listen_url", listen_url)
    channel = {"channel": DatabaseChannel(database_url)} if database_url else {}
    reached = database is None or database.reason is None
    yield asyncio.run(_broker(backend, {**channel, **backend_settings}, reached))


def _database(what: str, url: str) -> ConnectivityResult:
    try:
        connect(url).close()
        return ConnectivityResult(f"{what}: {describe_url(url)}")
    except TaskerError as error:
        return ConnectivityResult(what, error.message)


async def _broker(name: str, settings: BackendSettings, database_reached: bool) -> ConnectivityResult:
    try:
        backend = load_backend(name, settings)
        if backend.capabilities.transactional:
            away = None if database_reached else "it is in the database, which is unreachable"
            return ConnectivityResult(
                f"messaging: {name}, in the database", away
            )  # a start creates the missing objects
        return ConnectivityResult(f"messaging: {name}", None if await _answers(backend) else "its health check failed")
    except (TaskerError, OSError) as error:
        return ConnectivityResult(f"messaging: {name}", error.message if isinstance(error, TaskerError) else str(error))


async def _answers(backend: Backend) -> bool:
    try:
        await backend.open()
        return await backend.health_check()
    finally:
        await backend.close()
