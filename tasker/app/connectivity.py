"""Whether what a configuration names can be reached from here (`tasker config validate --check-connectivity`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from tasker.app.configured import Configured
from tasker.contracts.messaging import Backend
from tasker.db.channel import DatabaseChannel
from tasker.db.database import connect, describe_url
from tasker.errors import TaskerError
from tasker.messaging.registry import load_backend


@dataclass(frozen=True, slots=True)
class Reached:
    """`what` was tried; `reason` says why it failed, None when it did not."""

    what: str
    reason: str | None = None


def connectivity(chosen: Configured) -> Iterator[Reached]:
    """Try the database, where it is listened if that is another URL, and the chosen messaging backend.

    Nothing is created. The embedded server is not tried: it is started when it is needed.
    """
    listen_url = chosen.worker.events.listen_url
    database = _database("database", chosen.database_url) if chosen.database_url else None
    if database:
        yield database
    if listen_url:
        yield _database("listen_url", listen_url)
    yield asyncio.run(_broker(chosen, database is None or database.reason is None))


def _database(what: str, url: str) -> Reached:
    try:
        connect(url).close()
        return Reached(f"{what}: {describe_url(url)}")
    except TaskerError as error:
        return Reached(what, error.message)


async def _broker(chosen: Configured, database_reached: bool) -> Reached:
    name = chosen.backend
    channel = {"channel": DatabaseChannel(chosen.database_url)} if chosen.database_url else {}
    try:
        backend = load_backend(name, {**channel, **chosen.backend_settings.get(name, {})})
        if backend.capabilities.transactional:
            away = None if database_reached else "it is in the database, which cannot be reached"
            return Reached(f"messaging: {name}, in the database", away)  # a start makes what is missing there
        return Reached(f"messaging: {name}", None if await _answers(backend) else "its health check failed")
    except (TaskerError, OSError) as error:
        return Reached(f"messaging: {name}", error.message if isinstance(error, TaskerError) else str(error))


async def _answers(backend: Backend) -> bool:
    try:
        await backend.open()
        return await backend.health_check()
    finally:
        await backend.close()
