"""The two places where a fleet is found, and what a command needs of either."""

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
    """Where a command finds its fleet."""

    @property
    def runs_here(self) -> bool:
        """True where `tasker run --resume` can go on with a task in this shell."""
        ...

    def arguments(self) -> str:
        """The options that name the same place in another command, with a space before each; nothing secret."""
        ...

    def fleet(self) -> AbstractAsyncContextManager[Fleet]:
        """The fleet, for as long as the block lasts."""
        ...


@dataclass(frozen=True, slots=True)
class DatabaseTarget:
    """A fleet on its database."""

    database: DatabaseOption

    @property
    def runs_here(self) -> bool:
        """It does: the database is at hand."""
        return True

    def arguments(self) -> str:
        """The options of the database."""
        return self.database.arguments()

    @asynccontextmanager
    async def fleet(self) -> AsyncIterator[Fleet]:
        """An app that submits and reads. Raises `UsageError` where no embedded database has been made yet."""
        chosen = known_configuration(self.database)
        require_database(chosen.database_url, self.database.data_dir)
        async with opened(chosen, self.database.data_dir) as app:
            yield app


@dataclass(frozen=True, slots=True)
class ServerTarget:
    """A fleet through a server. `named` are the options that named it on the command line, if any did."""

    server: ServerAddress
    named: tuple[str, ...] = ()

    @property
    def runs_here(self) -> bool:
        """It does not: steps run where the database can be reached."""
        return False

    def arguments(self) -> str:
        """The options that name it."""
        return "".join(f" {quote(each)}" for each in self.named)

    @asynccontextmanager
    async def fleet(self) -> AsyncIterator[Fleet]:
        """What asks the server. Nothing is sent before a command asks."""
        from tasker.cli.connection import actor
        from tasker.cli.place.http_fleet import HttpFleet
        from tasker.client.http.client import HttpClient

        async with HttpClient(self.server, initiator=actor(), source_system="tasker") as client:
            yield HttpFleet(client)
