"""Who asked for what, over HTTP or by a command."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

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
class KeptAction:
    """An action as it was kept, and the status of its answer (of a command its exit code); None: it is not known."""

    action_uuid: str
    requested_at: datetime
    actor: str
    proof: str
    endpoint: str
    path: str
    request_id: str
    address: str | None
    status: int | None


class OperatorLog:
    """Keeps actions in `tasker.operator_actions`. Raises `DatabaseError` like every statement."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def asked(self, action: OperatorAction) -> str:
        """Keep an action before anything is done: nobody acts without a row. Answers its identifier."""
        ((found,),) = await self._connection.execute(query("operators", "asked"), asdict(action))
        return str(found)

    async def list(
        self, *, actor: str | None = None, since: datetime | None = None, limit: int = 50
    ) -> Sequence[KeptAction]:
        """Actions, the newest first."""
        which = {"actor": actor, "since": since, "limit": limit}
        return [KeptAction(*row) for row in await self._connection.execute(query("operators", "actions"), which)]

    async def answered(self, action: str, status: int) -> None:
        """Keep the status of the answer; where that fails what was done stays done, and the log says so."""
        try:
            await self._connection.execute(query("operators", "answered"), {"action": action, "status": status})
        except TaskerError as error:
            _log.warning("the answer to the operator's action %s (%s) could not be kept: %s", action, status, error)
