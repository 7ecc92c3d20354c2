"""A process in the registry of processes: what it enters, and how a process that holds no steps stays in it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tasker.errors import DatabaseError
from tasker.services.engine.calls import Engine
from tasker.version import __version__

TELL_SECONDS = 1.0
"""Spent at most on telling the registry of an end: the time of a stop is for results."""


@dataclass(frozen=True, slots=True)
class Registration:
    """The entry of one incarnation. `name` is for people, `callables` are the handlers that it has loaded."""

    identity: str
    lease_ms: int
    kind: str = "worker"
    name: str | None = None
    namespaces: Sequence[str] = ()
    callables: Sequence[str] = ()
    concurrency: int = 0
    backend: str | None = None
    """The messaging provider that it takes messages from."""

    def args(self, action: str) -> dict[str, Any]:
        """The arguments of `tasker.worker_v1`."""
        return {
            "action": action,
            "worker": self.identity,
            "kind": self.kind,
            "name": self.name,
            "lease_ms": self.lease_ms,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "version": __version__,
            "namespaces": list(self.namespaces),
            "callables": list(self.callables),
            "concurrency": self.concurrency,
            "backend": self.backend,
        }


class Heartbeat:
    """Keeps a process that holds no steps in the registry: it beats every third of its lease (H-47, H-48).

    A process that holds steps has a `LeaseKeeper` instead, with a thread of its own.
    """

    def __init__(self, engine: Engine, registration: Registration) -> None:
        self._engine, self._registration = engine, registration

    async def run(self) -> None:
        """Enter, and beat until cancelled. The registry is advisory: without the database it tries again (H-50)."""
        known = False
        while True:
            with contextlib.suppress(DatabaseError):
                answer = await self._engine.read("worker", self._registration.args("beat" if known else "start"))
                known = not known or bool(answer.get("known"))
            await asyncio.sleep(self._registration.lease_ms / 3000 if known else 1.0)

    async def leave(self) -> None:
        """Say that the process has ended."""
        await tell(self._engine, self._registration, "stop")


async def tell(engine: Engine, registration: Registration, action: str) -> None:
    """Tell the registry how a process ends; not for long, since its lease ends by itself."""
    with contextlib.suppress(DatabaseError, TimeoutError):
        async with asyncio.timeout(TELL_SECONDS):
            await engine.read("worker", registration.args(action))
