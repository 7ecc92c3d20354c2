"""The registry of processes: who is at work, what they serve, how they are."""

from __future__ import annotations

from typing import Any

from tasker.db.connection import Statements
from tasker.db.queries import query

Rows = list[dict[str, Any]]

COLUMNS = (
    "worker",
    "kind",
    "name",
    "host",
    "pid",
    "version",
    "state",
    "namespaces",
    "callables",
    "concurrency",
    "in_hand",
    "started_at",
    "beat_at",
    "lease_left_ms",
    "beat_age_ms",
)


class Workers:
    """Reads the registry (H-47, H-48). It is advisory: a worker whose beats fail goes on until it is fenced (H-50)."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def list(self, *, stopped: bool = False) -> Rows:
        """Every registered process: `live`, `draining` or `lost` (its lease is over); with `stopped` the ended, too.

        `in_hand` is how many steps it held at its last beat, `beat_age_ms` ago; `lease_left_ms` may be negative.
        """
        rows = await self._connection.execute(query("workers", "list"), {"stopped": stopped})
        return [dict(zip(COLUMNS, row, strict=True)) for row in rows]
