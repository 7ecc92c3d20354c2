"""Check that the database has room for the connections of all processes, logged once at the start of each."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from tasker.contracts.dataclasses import dataclass
from tasker.db.connection import Connection
from tasker.db.queries import query
from tasker.errors import DatabaseError
from tasker.messaging.service import MessagingService
from tasker.plugins.process import PluginHost
from tasker.resilience.outage import level_of

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
    found = Capacity(purposes, processes, allowed, reserved, in_use, live if is_alike else 0)
    if found.fits:
        _log.info("%s", found)
    else:
        _log.warning("%s: too many for this server; raise its max_connections, or start fewer processes", found)


def purposes_of(kind: Sequence[str], messaging: MessagingService) -> tuple[str, ...]:
    """Return the connections of a process of this kind; queues in the database need an additional one."""
    return (*kind, "messaging") if messaging.capabilities.transactional else tuple(kind)


def plugin_connections(plugins: PluginHost) -> tuple[str, ...]:
    """Return the connections that plugins open in the background, by plugin name."""
    return tuple(name for name, count in plugins.answers("tasker_connections") for _ in range(count))
