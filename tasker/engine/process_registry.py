"""Writes of a running process to the process registry: `tasker.worker_v1`, with a method for each action."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from typing import Any

from tasker.dataclasses import dataclass
from tasker.db.connection import Statements, SyncConnection
from tasker.engine.sweep_answers import SilentWorker
from tasker.version import __version__

FUNCTION = "tasker.worker_v1(%s::jsonb)"


@dataclass(frozen=True, slots=True)
class Registration:
    """Entry of one incarnation of a process. `name` is shown to people, `callables` are the handlers it has loaded."""

    worker: str
    """Id of the incarnation, a UUID as text."""
    lease_ms: int
    kind: str = "worker"
    name: str | None = None
    namespaces: Sequence[str] = ()
    callables: Sequence[str] = ()
    lacking: Sequence[str] = ()
    """Handlers that the process cannot serve, each with a resource that it lacks: `handler resource`."""
    concurrency: int = 0
    backend: str | None = None
    """Messaging backend from which the process takes messages."""
    tags: Sequence[str] = ()
    """What the process has that steps may require."""
    limits: Sequence[Mapping[str, Any]] | None = None
    """Limits of its configuration."""
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    version: str = __version__


@dataclass(frozen=True, slots=True)
class Renewal:
    """Answer to a heartbeat that names steps."""

    known: bool
    """False if the lease has expired: other workers have the steps, or may claim them at any moment."""
    lost: frozenset[str] = frozenset()
    """Named steps whose claim tokens are no longer valid."""


class ProcessRegistry:
    """Registry writes over one connection. All methods raise `DatabaseError` and are safe to repeat."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def start(self, entry: Registration) -> list[int]:
        """Register a process, whose lease begins now, and return the ids of its namespaces."""
        return await self._enter("start", entry)

    async def serve(self, entry: Registration) -> list[int]:
        """Register further namespaces or handlers, and return the ids of all its namespaces."""
        return await self._enter("serve", entry)

    async def beat(self, worker: str, lease_ms: int) -> bool:
        """Renew the lease of a process without claims. Return False if the registry does not know the process."""
        return bool((await self._call("beat", worker, lease_ms=lease_ms)).get("known"))

    async def sleep(self, worker: str) -> None:
        """Mark the process as sleeping, so that it is woken by notifications."""
        await self._call("sleep", worker)

    async def wake(self, worker: str) -> None:
        """Mark the process as awake: it needs no wake-up."""
        await self._call("wake", worker)

    async def drain(self, worker: str) -> None:
        """Mark the process as draining: it takes no new work."""
        await self._call("drain", worker)

    async def stop(self, worker: str) -> None:
        """Mark the process as stopped and end its lease."""
        await self._call("stop", worker)

    async def forget(self, older_ms: int) -> Sequence[SilentWorker]:
        """Delete processes that have been gone for `older_ms`. Return those that are silent but still have their
        lease."""
        answer = await self._connection.call(FUNCTION, {"action": "forget", "older_ms": older_ms})
        return [SilentWorker.parse(row) for row in answer.get("silent") or ()]

    async def _enter(self, action: str, entry: Registration) -> list[int]:
        fields = asdict(entry)
        answer = await self._connection.call(FUNCTION, {**fields, "action": action})
        return sorted(answer["namespaces"].values())

    async def _call(self, action: str, worker: str, **more: Any) -> dict[str, Any]:
        return await self._connection.call(FUNCTION, {"action": action, "worker": worker, **more})


def renew_lease(
    connection: SyncConnection, worker: str, lease_ms: int, in_hand: Sequence[tuple[str, int]], *, limit_ms: int
) -> Renewal:
    """Renew the lease of a worker with these (step, token) claims, from a thread, waiting at most `limit_ms`.

    Raises `DatabaseUnavailable`, also after the limit.
    """
    args = {"action": "beat", "worker": worker, "lease_ms": lease_ms, "held": [list(pair) for pair in in_hand]}
    answer = connection.call(FUNCTION, args, limit_ms=limit_ms)
    return Renewal(bool(answer.get("known")), frozenset(answer.get("lost") or ()))
