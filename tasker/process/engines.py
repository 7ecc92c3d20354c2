"""The connections of a process to its database, and the engine over each of them."""

from __future__ import annotations

from tasker.db.connection import Connection
from tasker.messaging.service import MessagingService
from tasker.services.engine.calls import Engine, Rules


class Engines:
    """Makes engines, each for one purpose and over a connection of its own, and closes them."""

    def __init__(self, url: str, messaging: MessagingService, rules: Rules) -> None:
        self._url, self._messaging, self._rules = url, messaging, rules
        self._connections: list[Connection] = []

    def make(self, purpose: str) -> Engine:
        """An engine whose connection names this purpose to the server; it connects when it is used."""
        connection = Connection(self._url, name=f"tasker {purpose}")
        self._connections.append(connection)
        return Engine(connection, self._messaging, self._rules)

    async def close(self) -> None:
        """Close all of their connections."""
        for connection in self._connections:
            await connection.close()
