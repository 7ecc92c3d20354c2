"""Resources of the commands for messaging providers: the database, and one or two providers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tasker.app.bootstrap import prepare, require_shared
from tasker.app.configured import Configured
from tasker.db.connection import Connection
from tasker.messaging.registry import load_backend
from tasker.process.connections.resources import Resources
from tasker.services.engine.calls import Engine
from tasker.services.fleet.broker_migration import BrokerMigration


@asynccontextmanager
async def provider(
    configuration: Configured, backend: str, data_dir: Path | None = None
) -> AsyncGenerator[tuple[Resources, Connection]]:
    """Open a provider with its configured settings, and a connection to the database.

    Raises `UsageError` for a provider that lives inside one process, and the errors of `prepare` and of opening.
    """
    settings = configuration.backend_settings.get(backend)
    require_shared(load_backend(backend, settings or {}), "nothing of it can be reached from here")
    resources = prepare(
        configuration.database_url,
        backend=backend,
        data_dir=data_dir,
        names=configuration.queue_names,
        backend_settings=settings,
        database=configuration.database,
    )
    connection = Connection(resources.url, name="tasker broker")
    try:
        await resources.messaging.open()
        yield resources, connection
    finally:
        await connection.close()
        await resources.messaging.close()
        resources.close()


@asynccontextmanager
async def migration(
    configuration: Configured, to: str, data_dir: Path | None = None
) -> AsyncGenerator[BrokerMigration]:
    """Open a migration to a provider. Raises the errors of `provider`."""
    async with provider(configuration, to, data_dir) as (resources, connection):
        yield BrokerMigration(Engine(connection, resources.messaging))
