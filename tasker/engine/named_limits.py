"""Limits of the configuration in the database: stored at start and after a change, compared with those of others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tasker.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.errors import DatabaseError

FUNCTION = "tasker.declare_limits_v1(%s::jsonb)"
_log = logging.getLogger("tasker.configuration")


@dataclass(frozen=True, slots=True)
class NamedLimitNumbers:
    """Numbers of a limit that templates name. None: that number is not limited."""

    name: str
    concurrency: int | None
    rate: float | None
    """Attempts per second."""
    burst: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as the database takes them."""
        return {"name": self.name, "concurrency": self.concurrency, "rate": self.rate, "burst": self.burst}


@dataclass(frozen=True, slots=True)
class NamedLimits:
    """Limits of one configuration."""

    limits: Sequence[NamedLimitNumbers] = ()
    changed_at: datetime | None = None
    """When the file was last written; None counts as now."""


NO_LIMITS = NamedLimits()


class LimitDeclarations:
    """The limits of this process, written to the database unless those of a newer file are there."""

    def __init__(self, connection: Statements, limits: NamedLimits = NO_LIMITS) -> None:
        self._connection, self._limits = connection, limits
        self._changing: set[asyncio.Task[None]] = set()

    @property
    def rows(self) -> list[dict[str, Any]] | None:
        """Limits for the registry of processes; None if the configuration has none."""
        return [limit.to_dict() for limit in self._limits.limits] or None

    async def declare(self, worker: str | None = None, connection: Statements | None = None) -> None:
        """Store the limits. `worker` is the registered process whose entry shows them. Raises `DatabaseError`."""
        limits = self._limits
        if worker is None and not limits.limits:
            return
        changed_at = None if limits.changed_at is None else limits.changed_at.isoformat()
        args = {"limits": self.rows or [], "changed_at": changed_at, "worker": worker}
        answer = await (connection or self._connection).call(FUNCTION, args)
        for row in answer["differing"]:
            _log.warning(
                "limit_differs name=%s: a newer configuration has concurrency=%s rate=%s burst=%s, which is in force",
                *(row[key] for key in ("name", "concurrency", "rate", "burst")),
            )

    def change(self, limits: NamedLimits, worker: str) -> None:
        """Store changed limits soon, from the running event loop; an error is logged."""
        if limits == self._limits:
            return
        self._limits = limits
        task = asyncio.get_running_loop().create_task(self._redeclare(worker))
        self._changing.add(task)
        task.add_done_callback(self._changing.discard)

    async def _redeclare(self, worker: str) -> None:
        try:
            await self.declare(worker)
        except DatabaseError as error:
            _log.error("limits_not_changed send SIGHUP again: %s", error)
