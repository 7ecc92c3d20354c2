"""Connections of a process at its start: database, broker, engines."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tasker.dataclasses import dataclass
from tasker.db.connection import Connection
from tasker.db.sql_files import query
from tasker.db.startup_wait import with_servers
from tasker.engine.calls import Engine
from tasker.engine.fleet_rules import FleetRules
from tasker.engine.waiters import WaiterNotifications
from tasker.engine.write_listeners import WriteListeners
from tasker.errors import DatabaseError
from tasker.messaging.port import Backend
from tasker.messaging.service import MessagingService
from tasker.plugins.host import PluginHost
from tasker.process.heartbeat import briefly
from tasker.process.watchdogs import restart_embedded_server
from tasker.resilience.outage import level_of

if TYPE_CHECKING:
    from tasker.db.embedded import EmbeddedServer


async def open_broker(messaging: MessagingService, wait_seconds: float) -> None:
    """Connect to the broker; retry with growing pauses for `wait_seconds`, with log lines.

    A backend whose queues live in the database connects on first use: the schema with its functions is up to date by
    then.

    Raises `BackendUnavailable` after that time, and at once if waiting cannot help (a wrong password).
    """
    if messaging.capabilities.transactional:
        return
    hint = f"start the broker, or check the setting common.queues.{messaging.provider_name()}.url"
    await with_servers(f"the broker ({messaging.provider_name()})", wait_seconds, hint, messaging.open)


WORKER = ("claim", "result", "upkeep", "lease", "listen")
ORCHESTRATOR = ("results", "upkeep", "listen")
PROCESSES_VARIABLE = "TASKER_PROCESSES"
"""Environment variable by which `--processes` tells each process how many were started."""
_log = logging.getLogger("tasker.process")


@dataclass(frozen=True, slots=True)
class Capacity:
    """Connections that the processes need, and those that the server has."""

    purposes: Sequence[str]
    """Purpose of each connection; a purpose of several connections is listed several times."""
    processes: int
    """Number of processes started together, this one included."""
    allowed: int
    reserved: int
    """Number of those connections reserved for superusers and other privileged roles."""
    in_use: int
    live: int
    """Number of registered, live processes of the whole fleet."""

    @property
    def needed(self) -> int:
        """Return the number of connections of the fleet if every process has as many as this one."""
        return max(self.live, self.processes) * len(self.purposes)

    @property
    def fits(self) -> bool:
        """Return True when the server has enough connections for ordinary roles."""
        return self.needed <= self.allowed - self.reserved

    def __str__(self) -> str:
        here, together = len(self.purposes), len(self.purposes) * self.processes
        counts = Counter(self.purposes).items()
        purposes = ", ".join(purpose if count == 1 else f"{purpose} x {count}" for purpose, count in counts)
        return (
            f"connections per_process={here} ({purposes}) processes={self.processes} sum={together} "
            f"fleet={self.needed} server_max={self.allowed} reserved={self.reserved} in_use={self.in_use}"
        )


async def log_capacity(url: str, purposes: Sequence[str], processes: int, *, is_alike: bool = True) -> None:
    """Log the connections needed and available, as a warning when the server has too few for the fleet.

    Other processes are taken to have as many connections as this one, unless `is_alike` is False.
    """
    connection = Connection(url, name="tasker start")
    try:
        ((allowed, reserved, in_use, live),) = await connection.execute(query("database", "capacity"))
    except DatabaseError as error:
        _log.log(level_of(error), "connections unknown: %s", error)
        return
    finally:
        await connection.close()
    capacity = Capacity(purposes, processes, allowed, reserved, in_use, live if is_alike else 0)
    if capacity.fits:
        _log.info("%s", capacity)
    else:
        _log.warning("%s: too many for this server; raise its max_connections, or start fewer processes", capacity)


def purposes_of(kind: Sequence[str], messaging: MessagingService) -> tuple[str, ...]:
    """Return the connections of a process of this kind; queues in the database need an additional one."""
    return (*kind, "messaging") if messaging.capabilities.transactional else tuple(kind)


def plugin_connections(plugins: PluginHost) -> tuple[str, ...]:
    """Return the connections that plugins open in the background, by plugin name."""
    return tuple(name for name, count in plugins.answers("tasker_connections") for _ in range(count))


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
        await briefly(self.notices.flush())
        for connection in self._connections:
            await connection.close()


def with_faults(backend: Backend) -> Backend:
    """Return the backend, with faults when the variable is set. Raises `UsageError` for an invalid value."""
    if not (setting := os.environ.get("TASKER_CHAOS")):
        return backend
    from tasker.messaging.chaos import ChaosBackend, Faults

    return ChaosBackend(backend, Faults.parse(setting))


@dataclass(slots=True)
class Resources:
    """The database's URL, the messaging service, and the embedded server if this process started it."""

    url: str
    messaging: MessagingService
    server: EmbeddedServer | None = None
    _guard: asyncio.Task[None] | None = None

    def guard(self) -> None:
        """Restart the embedded server from now on when it dies."""
        if self.server is not None:
            self._guard = asyncio.create_task(restart_embedded_server(self.server), name="keep_running")

    async def open(self) -> None:
        """Connect the messaging backend, and guard the embedded server.

        A backend whose queues live in the database connects on first use.
        """
        self.guard()
        if not self.messaging.capabilities.transactional:
            await self.messaging.open()

    def close(self) -> None:
        """Release the embedded server; it stops when no process uses it."""
        if self._guard is not None:
            self._guard.cancel()
            self._guard = None
        if self.server is not None:
            self.server.stop()
            self.server = None
