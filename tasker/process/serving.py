"""A process that serves until it is stopped: waits for its servers, serves, and logs its stop."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from tasker.dataclasses import dataclass
from tasker.db.startup_wait import with_servers
from tasker.logging.lines import log_line
from tasker.process.connections import PROCESSES_VARIABLE, Resources, log_capacity, open_broker, purposes_of
from tasker.process.runtime import Runtime
from tasker.process.stopping import Stop, give_back_of, grace_of
from tasker.process.watchdogs import watch_interpreter

CALLED = {
    "worker": ("worker", "Worker core", "worker_id"),
    "orchestrator": ("orchestration system", "Orchestration core", "processor_uuid"),
}
"""Names of the process, of its engine, and of its identity in the documented log lines, by kind."""
_log = logging.getLogger("tasker.process")


class ServedProcess(Protocol):
    """A process that can be started and stopped."""

    async def start(self) -> None:
        """Start serving."""
        ...

    async def stop(self) -> None:
        """Stop gracefully."""
        ...


class Title(NamedTuple):
    """Title of a process: kind and identity, the `namespaces` of a worker, and the `address` of its port."""

    kind: str
    identity: str
    namespaces: Sequence[str] = ()
    address: str = ""

    def __str__(self) -> str:
        served = f" serves {', '.join(self.namespaces)}" if self.namespaces else ""
        return f"{self.kind} {self.identity}{served}" + (f", and answers on {self.address}" if self.address else "")


@dataclass(frozen=True, slots=True)
class StopLimits:
    """Time limits in seconds for the stop, for connecting to servers, and of the lease."""

    stop_seconds: float
    connect_seconds: float
    lease_seconds: float


class GracefulWorker:
    """A worker whose whole stop has a limit in seconds, and which logs how it stops."""

    def __init__(self, runtime: Runtime, limit_seconds: float) -> None:
        self._runtime, self._limit_seconds = runtime, limit_seconds

    async def start(self) -> None:
        await self._runtime.start()

    async def stop(self) -> None:
        """Stop the worker; log the running steps, the effect of a second signal, and the number of released steps."""
        worker, grace_seconds = self._runtime.worker, grace_of(self._limit_seconds)
        before = worker.released_count
        if worker.busy:
            _log.info(
                "waiting for %s, at most %g seconds; what runs then is given back without an attempt."
                " A second signal ends the process at once, and costs each of them an attempt",
                _steps(worker.busy),
                grace_seconds,
            )
        await self._runtime.stop(grace_seconds, give_back_of(self._limit_seconds))
        _log.info("stopped; gave back %s", _steps(worker.released_count - before))
        if worker.busy:
            lost = "%s did not end in time; other workers take them over when the lease is over, which costs an attempt"
            _log.warning(lost, _steps(worker.busy))


async def serve(
    server: ServedProcess,
    resources: Resources,
    patience: StopLimits,
    title: Title,
    ready: Callable[[str], None],
    connections: Sequence[str],
) -> None:
    """Connect, start the server, and stop it at the first signal, with log lines.

    `ready` gets the `title` as text once it serves; `connections` are the purposes of its database connections.
    """
    stop, (name, core, key) = Stop(patience.stop_seconds), CALLED[title.kind]
    who, served = {key: title.identity}, {"namespaces": [*title.namespaces]} if title.namespaces else {}
    _log.info("Starting %s bootstrap", name)
    try:
        longest = max(patience.stop_seconds, patience.lease_seconds)
        with watch_interpreter(longest):  # until its lease expires, the process may still write results
            if await stop.interrupted(open_broker(resources.messaging, patience.connect_seconds)):
                return
            resources.guard()
            log_line(_log, logging.INFO, "System context initialized", who)
            where, hint = "the database and the broker", "see whether they run"
            if await stop.interrupted(with_servers(where, patience.connect_seconds, hint, server.start)):
                return
            _log.info("%s initialized", core)
            ready(str(title))
            log_line(_log, logging.INFO, f"{name.capitalize()} bootstrap complete", who | served)
            together = int(os.environ.get(PROCESSES_VARIABLE, "1"))
            await log_capacity(resources.url, purposes_of(connections, resources.messaging), together)
            await stop.requested()
            _log.info("Initiating graceful shutdown: stopping %s", title)
            await server.stop()
            _log.info("%s shutdown complete", name.capitalize())
    finally:
        await resources.messaging.close()
        resources.close()


def _steps(number: int) -> str:
    return f"{number} step" if number == 1 else f"{number} steps"
