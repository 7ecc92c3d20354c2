"""The registry of processes, as those at work write in it: `tasker.worker_v1`, with a method for each action."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import asdict, field
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.db.connection import Statements, SyncConnection
from tasker.services.engine.found import SilentWorker
from tasker.version import __version__

FUNCTION = "tasker.worker_v1(%s::jsonb)"


@dataclass(frozen=True, slots=True)
class Registration:
    """The entry of one incarnation of a process. `name` is for people, `callables` are the handlers it has loaded."""

    worker: str
    """Its identity, a uuid as text."""
    lease_ms: int
    kind: str = "worker"
    name: str | None = None
    namespaces: Sequence[str] = ()
    callables: Sequence[str] = ()
    concurrency: int = 0
    backend: str | None = None
    """The messaging provider that it takes messages from."""
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    version: str = __version__


@dataclass(frozen=True, slots=True)
class Renewal:
    """What a beat that names steps was answered."""

    known: bool
    """False when the lease is over: others have the steps, or may have them at any moment."""
    lost: frozenset[str] = frozenset()
    """Steps that were named with tokens which do not count any more."""


class ProcessRegistry:
    """Writes in the registry over one connection. All methods raise `DatabaseError`, and may be called again."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def start(self, entry: Registration) -> list[int]:
        """Enter a process, whose lease begins now; the identifiers of its namespaces."""
        return await self._enter("start", entry)

    async def serve(self, entry: Registration) -> list[int]:
        """Other namespaces or handlers from now on; the identifiers of all its namespaces."""
        return await self._enter("serve", entry)

    async def beat(self, worker: str, lease_ms: int) -> bool:
        """Renew the lease of a process that holds no steps; False when the registry does not know it."""
        return bool((await self._call("beat", worker, lease_ms=lease_ms)).get("known"))

    async def sleep(self, worker: str) -> None:
        """It waits to be woken."""
        await self._call("sleep", worker)

    async def wake(self, worker: str) -> None:
        """It is up: waking it is of no use."""
        await self._call("wake", worker)

    async def drain(self, worker: str) -> None:
        """It takes on nothing more."""
        await self._call("drain", worker)

    async def stop(self, worker: str) -> None:
        """It has ended, and its lease with it."""
        await self._call("stop", worker)

    async def forget(self, older_ms: int) -> Sequence[SilentWorker]:
        """Strike out processes that are gone for so long; those that are silent but still have their lease."""
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
    """Renew the lease of a worker that holds these (step, token) pairs, for threads; waits at most `limit_ms`.

    Raises `DatabaseUnavailable`, also when the limit is over.
    """
    args = {"action": "beat", "worker": worker, "lease_ms": lease_ms, "held": [list(pair) for pair in in_hand]}
    answer = connection.call(FUNCTION, args, limit_ms=limit_ms)
    return Renewal(bool(answer.get("known")), frozenset(answer.get("lost") or ()))
