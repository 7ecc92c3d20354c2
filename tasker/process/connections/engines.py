"""The connections of a process to its database, and the engine over each of them."""

from __future__ import annotations

from tasker.db.connection import Connection
from tasker.messaging.service import MessagingService
from tasker.process.presence.heartbeat import briefly
from tasker.services.engine.calls import Engine, FleetRules
from tasker.services.engine.end_notices import WaiterNotifications
from tasker.services.engine.listeners import WriteListeners


class Engines:
    """Makes engines, each for one purpose and over a connection of its own, and closes them.

    `upkeep` is the one for what is neither a claim nor a result. Somebody must run `notices`, which tell who waits for
    a task that any of them has ended; `waiter` is the program in this process, `listeners` as of `Engine`.
    """

    def __init__(
        self,
        url: str,
        messaging: MessagingService,
        rules: FleetRules,
        waiter: str | None = None,
        listeners: WriteListeners | None = None,
    ) -> None:
        self._url, self._messaging, self._rules = url, messaging, rules
        self._listeners = listeners
        self._connections: list[Connection] = []
        shared = self._connection("upkeep")
        self.notices = WaiterNotifications(shared, waiter)
        self.upkeep = self._engine(shared)

    def make(self, purpose: str) -> Engine:
        """An engine whose connection names this purpose to the server; it connects when it is used."""
        return self._engine(self._connection(purpose))

    def _engine(self, connection: Connection) -> Engine:
        return Engine(connection, self._messaging, self._rules, self.notices, listeners=self._listeners)

    def _connection(self, purpose: str) -> Connection:
        connection = Connection(self._url, name=f"tasker {purpose}")
        self._connections.append(connection)
        return connection

    async def close(self) -> None:
        """Tell what is still to be told, and close all connections."""
        await briefly(self.notices.tell())
        for connection in self._connections:
            await connection.close()
