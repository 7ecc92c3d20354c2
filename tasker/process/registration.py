"""A worker's registration: its entry in the registry of processes, and the lease that comes with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from tasker.clock import Clock, new_uuid
from tasker.db.connection import SyncConnection
from tasker.db.pace import outage_of
from tasker.engine.named_limits import LimitDeclarations
from tasker.engine.process_registry import ProcessRegistry, Registration
from tasker.errors import DatabaseError, DatabaseUnavailable, SessionRefused
from tasker.execution.worker import Worker
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.process.heartbeat import TELL_SECONDS, briefly
from tasker.process.lease import LeaseKeeper, run_lease_keeper
from tasker.process.stopping import to_its_end
from tasker.process.supervisor import Supervisor

GIVE_UP_SECONDS = 5.0
"""Time that stopped handlers have to return; one that does not return is abandoned."""
LIST_SECONDS = 1.0
"""Pause between two comparisons of the loaded handlers with the registered ones."""
_log = logging.getLogger("tasker.worker")


class WorkerRegistration:
    """The worker's membership in the fleet: registers it, keeps its lease, and deregisters it.

    `handlers` and `namespaces` are what it serves; both may grow, and `update` registers the additions. `url` is the
    database's, to which the lease has a connection of its own; `backend` names the messaging provider.
    """

    def __init__(
        self,
        worker: Worker,
        registry: ProcessRegistry,
        handlers: HandlerRegistry,
        namespaces: list[str],
        backend: str,
        url: str,
        clock: Clock,
        limits: LimitDeclarations,
    ) -> None:
        self.namespaces = namespaces
        self._worker, self._registry, self._handlers, self._backend = worker, registry, handlers, backend
        self._url, self._clock, self._limits = url, clock, limits
        self._told_revision = -1
        self._away = False
        self._joined = False
        self._lease: LeaseKeeper | None = None
        self._problem = ""
        self._end_level = logging.INFO

    async def join(self, on_fenced: Callable[[], None], on_renewal: Callable[[str], None]) -> None:
        """Register the worker and keep the lease. Raises `DatabaseError`.

        The connection that renews the lease is opened first: without it the worker would claim steps and then lose
        them. `on_fenced` is called when the lease is lost; `on_renewal` gets the reason why it cannot be renewed, and
        "" when it is renewed again.
        """

        def renewed(error: DatabaseUnavailable | None) -> None:
            self._log_renewal(error)
            on_renewal(self._problem)

        connection = SyncConnection(self._url)
        try:
            await asyncio.to_thread(connection.open, limit_ms=self._worker.settings.lease.lease_ms // 3)
        except DatabaseUnavailable as error:
            renewed(error)
            raise
        try:
            # a cancelled registration could be written after `leave`
            await to_its_end(self._tell(self._registry.start), TELL_SECONDS)
        except BaseException:
            connection.close()
            raise
        self._lease = run_lease_keeper(connection, self._clock, self._worker, on_fenced, renewed)
        self._joined = True
        renewed(None)

    def _log_renewal(self, error: DatabaseUnavailable | None) -> None:
        """Log once that the lease cannot be renewed, and once that it is renewed again; during an outage log less."""
        outage = outage_of(self._url)
        if error is not None and not isinstance(error, SessionRefused):
            outage.failed(error, outage.now())
        elif error is None and self._problem:
            outage.answered()
        worker, before, self._problem = self._worker.identity, self._problem, error.message if error else ""
        if error is not None and not before:
            level, self._end_level = (logging.DEBUG, logging.DEBUG) if outage.is_on else (logging.WARNING, logging.INFO)
            _log.log(level, "lease_not_renewed worker=%s: nothing is claimed until it is: %s", worker, error.message)
        elif before and error is None:
            _log.log(self._end_level, "lease_renewed worker=%s", worker)

    @property
    def up_to_date(self) -> bool:
        """Return True when no handler was loaded since the last registration."""
        return self._told_revision == self._handlers.revision

    async def update(self) -> None:
        """Register namespaces and handlers that were added since."""
        await self._tell(self._registry.serve)

    async def keep_listed(self) -> None:
        """Register handlers that were loaded or got another name since, until cancelled."""
        while True:
            await asyncio.sleep(LIST_SECONDS)
            if not self.up_to_date:
                with contextlib.suppress(DatabaseError):
                    await self.update()

    async def drain(self) -> None:
        """Mark the worker in the registry as claiming nothing more."""
        await briefly(self._registry.drain(self._worker.identity))

    async def leave(self) -> None:
        """Stop renewing the lease, and deregister the worker."""
        await self._end_lease()
        await briefly(self._registry.stop(self._worker.identity))

    async def give_up(self, supervisor: Supervisor) -> None:
        """End this registration, whose lease was lost, and prepare a new one (rule 12).

        Raises `DatabaseUnavailable`; it may be called again. A worker that has not joined yet keeps its identity.
        """
        if not self._joined:
            return
        worker, steps = self._worker, self._worker.busy
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GIVE_UP_SECONDS):
                await worker.claims.drain()
        if not await supervisor.stop():
            raise DatabaseUnavailable(f"worker {worker.identity} cannot begin anew while one of its services hangs")
        await self._end_lease()
        try:
            await self._registry.stop(worker.identity)
        except DatabaseUnavailable:
            self._away = True  # an outage ended the lease, and has log lines of its own
            raise
        level = logging.WARNING if steps and not self._away else logging.DEBUG
        _log.log(level, "worker_fenced worker=%s steps=%s: others take them over", worker.identity, steps)
        self._away = self._joined = False
        worker.begin_as(new_uuid())

    async def _end_lease(self) -> None:
        if self._lease is None:
            return
        try:
            await asyncio.to_thread(self._lease.stop)
        except RuntimeError:  # an `atexit` function stops the worker: the interpreter starts no threads any more
            self._lease.stop()

    async def _tell(self, enter: Callable[[Registration], Awaitable[list[int]]]) -> None:
        worker, revision = self._worker, self._handlers.revision
        entry = Registration(
            worker.identity,
            worker.settings.lease.lease_ms,
            namespaces=self.namespaces,
            callables=self._handlers.served_handlers(),
            lacking=self._handlers.lacking(),
            name=worker.settings.name,
            concurrency=worker.settings.dispatch.max_concurrent_handlers,
            backend=self._backend,
            tags=sorted(worker.settings.tags),
            limits=self._limits.rows,
        )
        worker.registered(await enter(entry))
        self._told_revision = revision
