"""Database and server as target fleets of a command, and their common interface."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from shlex import quote
from typing import TYPE_CHECKING, Protocol

from tasker.cli.connection import known_configuration, opened, require_database
from tasker.cli.options import DatabaseOption
from tasker.contracts.dataclasses import dataclass

if TYPE_CHECKING:
    from tasker.cli.place.fleet import Fleet
    from tasker.client.http.server import ServerAddress


class FleetTarget(Protocol):
    """Target fleet of a command."""

    @property
    def runs_here(self) -> bool:
        """True if `tasker run --resume` can continue a task in this shell."""
        ...

    def arguments(self) -> str:
        """Return the options that name the same target in another command, each with a leading space; no secrets."""
        ...

    def fleet(self) -> AbstractAsyncContextManager[Fleet]:
        """Open the fleet for the duration of the block."""
        ...


@dataclass(frozen=True, slots=True)
class DatabaseTarget:
    """Fleet accessed through its database."""

    database: DatabaseOption

    @property
    def runs_here(self) -> bool:
        """True: this shell can access the database."""
        return True

    def arguments(self) -> str:
        return self.database.arguments()

    @asynccontextmanager
    async def fleet(self) -> AsyncIterator[Fleet]:
        """Open an app that submits and reads. Raises `UsageError` if there is no embedded database yet."""
        chosen = known_configuration(self.database)
        require_database(chosen.database_url, self.database.data_dir)
        async with opened(chosen, self.database.data_dir) as app:
            yield app


@dataclass(frozen=True, slots=True)
class ServerTarget:
    """Fleet accessed through a server. `named` holds the options that named it on the command line, if any."""

    server: ServerAddress
    named: tuple[str, ...] = ()

    @property
    def runs_here(self) -> bool:
        """False: steps run where the database is accessible."""
        return False

    def arguments(self) -> str:
        return "".join(f" {quote(each)}" for each in self.named)

    @asynccontextmanager
    async def fleet(self) -> AsyncIterator[Fleet]:
        """Open a client of the server. Nothing is sent before the command makes a request."""
        from tasker.cli.connection import actor
        from tasker.cli.place.http_fleet import HttpFleet
        from tasker.client.http.client import HttpClient

        async with HttpClient(self.server, initiator=actor(), source_system="tasker") as client:
            yield HttpFleet(client)
