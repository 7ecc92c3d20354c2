"""Registry of processes: running workers and orchestrators, what they serve, and their state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tasker.db.connection import Statements
from tasker.db.queries import query
from tasker.services.listings import ProcessRow


class Workers:
    """Queries of the registry. It is advisory: a worker whose heartbeats fail continues until it is fenced."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def list(self, *, stopped: bool = False) -> Sequence[ProcessRow]:
        """Return the `live`, `draining` and `lost` (lease expired) processes; with `stopped`, ended ones too."""
        rows = await self._connection.execute(query("fleet", "list"), {"stopped": stopped})
        return [ProcessRow(*row) for row in rows]

    async def serving(self, template_id: int) -> Mapping[str, int]:
        """Return the number of live workers with the handler of each step of a template, by step name.

        A worker that received the step and could not resolve its handler is not counted, as in `tasker task explain`.
        """
        rows = await self._connection.execute(query("fleet", "serving"), {"template": template_id})
        return dict(rows)
