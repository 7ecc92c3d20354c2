"""Audit log of operator actions over HTTP or by a command."""

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
    """Request of an operator that changes something: `endpoint` is the action, `path` its subject.

    `proof` is how the actor is known: `jwt`, `api_key`, `disabled` (a server without authentication), or `os_user`.
    """

    actor: str
    proof: str
    endpoint: str
    path: str
    request_id: str
    address: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedAction:
    """Recorded action with the status of its response (for a command the exit code), or None if unknown.

    `refusal` is the reason why it was not done: a message, or only the error's type if its message may be secret.
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
    """Audit log in `tasker.operator_actions`. Methods raise `DatabaseError` unless stated otherwise."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def asked(self, action: OperatorAction, status: int | None = None) -> str:
        """Record an action and return its identifier.

        `status` is the final status if the row is part of the action's transaction. Otherwise the row is written before
        anything is done, so that no action lacks a row.
        """
        ((found,),) = await self._connection.execute(query("operators", "asked"), {**asdict(action), "status": status})
        return str(found)

    async def list(
        self, *, actor: str | None = None, since: datetime | None = None, limit: int = 50
    ) -> Sequence[RecordedAction]:
        """Return the actions, newest first."""
        which = {"actor": actor, "since": since, "limit": limit}
        return [RecordedAction(*row) for row in await self._connection.execute(query("operators", "actions"), which)]

    async def answered(self, row: str, status: int) -> None:
        """Record the status of the response; if that fails, the action stays done and a warning is logged."""
        await self._keep("answered", {"row": row, "status": status})

    async def failed(self, row: str, status: int, reason: str | None) -> None:
        """Record the failure of an action that already has a row; if that fails, a warning is logged."""
        await self._keep("failed", {"row": row, "status": status, "refusal": reason})

    async def not_done(self, action: OperatorAction, row: str | None, status: int | None, reason: str | None) -> None:
        """Record that nothing was done, with status and reason; if that fails, a warning is logged.

        `row` is the identifier of the row that was rolled back with the attempt. If it was committed after all, because
        the connection was lost during the commit, it stays as it is.
        """
        await self._keep("not_done", {**asdict(action), "row": row, "status": status, "refusal": reason})

    async def _keep(self, name: str, params: Mapping[str, Any]) -> None:
        try:
            await self._connection.execute(query("operators", name), params)
        except TaskerError as error:
            which, status = params.get("endpoint") or params["row"], params["status"]
            _log.warning("recording the outcome of operator action %s (%s) failed: %s", which, status, error)
