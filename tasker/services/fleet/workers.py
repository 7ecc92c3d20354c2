"""The registry of processes: who is at work, what they serve, how they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tasker.db.connection import Statements
from tasker.db.queries import query
from tasker.services.listings import ProcessRow


class Workers:
    """Reads the registry. It is advisory: a worker whose beats fail goes on until it is fenced."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def list(self, *, stopped: bool = False) -> Sequence[ProcessRow]:
        """Every registered process: `live`, `draining` or `lost` (its lease is over); with `stopped` the ended, too."""
        rows = await self._connection.execute(query("workers", "list"), {"stopped": stopped})
        return [ProcessRow(*row) for row in rows]

    async def serving(self, template_id: int) -> Mapping[str, int]:
        """How many live workers have the handler of each step of a template, by the step's name.

        One that has taken the step and could not resolve its handler is not counted, as for `tasker task explain`.
        """
        rows = await self._connection.execute(query("workers", "serving"), {"template": template_id})
        return dict(rows)
