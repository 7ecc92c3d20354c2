"""Who asked for what, over HTTP or by a command."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.queries import query
from tasker.errors import TaskerError

_log = logging.getLogger("tasker.api")


@dataclass(frozen=True, slots=True)
class OperatorAction:
    """One request that changes something by hand: `endpoint` says what is done, `path` to what.

    `proof` says how the actor is known: `jwt`, `api_key`, `disabled` (a server without authentication), or `os_user`.
    """

    actor: str
    proof: str
    endpoint: str
    path: str
    request_id: str
    address: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedAction:
    """An action as it was kept, and the status of its answer (of a command its exit code); None: it is not known.

    `refusal` is why it was not done: a message, or of an error whose message may be secret the kind alone.
    """

    action_uuid: str
    requested_at: datetime
    actor: str
    proof: str
    endpoint: str
    path: str
    request_id: str
    address: str | None
    status: int | None
    refusal: str | None = None


class AuditLog:
    """Keeps actions in `tasker.operator_actions`. Raises `DatabaseError` like every statement."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def asked(self, action: OperatorAction, status: int | None = None) -> str:
        """Keep an action, with the status that it has once it is done where this is part of its transaction, else
        before anything is done: nobody acts without a row. Answers its identifier."""
        ((found,),) = await self._connection.execute(query("operators", "asked"), {**asdict(action), "status": status})
        return str(found)

    async def list(
        self, *, actor: str | None = None, since: datetime | None = None, limit: int = 50
    ) -> Sequence[RecordedAction]:
        """Actions, the newest first."""
        which = {"actor": actor, "since": since, "limit": limit}
        return [RecordedAction(*row) for row in await self._connection.execute(query("operators", "actions"), which)]

    async def answered(self, row: str, status: int) -> None:
        """Keep the status of the answer; where that fails what was done stays done, and the log says so."""
        await self._keep("answered", {"row": row, "status": status})

    async def failed(self, row: str, status: int, reason: str | None) -> None:
        """Keep how and why something failed that has a row from before; a failure is handled likewise."""
        await self._keep("failed", {"row": row, "status": status, "refusal": reason})

    async def not_done(self, action: OperatorAction, row: str | None, status: int | None, reason: str | None) -> None:
        """Keep that nothing was done, with the status of the answer and why; a failure is handled likewise.

        `row` is the identifier of the row that was rolled back with what was tried. Where it was committed after all,
        because the connection was lost while the server did it, it stays as it is.
        """
        await self._keep("not_done", {**asdict(action), "row": row, "status": status, "refusal": reason})

    async def _keep(self, name: str, params: Mapping[str, Any]) -> None:
        try:
            await self._connection.execute(query("operators", name), params)
        except TaskerError as error:
            which, status = params.get("endpoint") or params["row"], params["status"]
            _log.warning("the answer to the operator's action %s (%s) could not be kept: %s", which, status, error)
