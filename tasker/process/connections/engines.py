"""The database connections of a process, and the engine over each of them."""

from __future__ import annotations

from tasker.db.connection import Connection
from tasker.messaging.service import MessagingService
from tasker.process.presence.heartbeat import briefly
from tasker.services.engine.calls import Engine, FleetRules
from tasker.services.engine.end_notices import WaiterNotifications
from tasker.services.engine.listeners import WriteListeners


class Engines:
    """Factory of engines, each for one purpose and with a connection of its own; closes all of them.

    `upkeep` is the engine for everything but claims and results. A service of the process must run `notices`, which
    notify waiters of tasks that any engine has ended; `waiter` is the program in this process, `listeners` are those of
    `Engine`.
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
        """Return an engine whose connection names this purpose to the server; it connects on first use."""
        return self._engine(self._connection(purpose))

    def _engine(self, connection: Connection) -> Engine:
        return Engine(connection, self._messaging, self._rules, self.notices, listeners=self._listeners)

    def _connection(self, purpose: str) -> Connection:
        connection = Connection(self._url, name=f"tasker {purpose}")
        self._connections.append(connection)
        return connection

    async def close(self) -> None:
        """Send the remaining notifications, and close all connections."""
        await briefly(self.notices.tell())
        for connection in self._connections:
            await connection.close()
