"""Audit log: actions of operators, recorded with the change or with its refusal.

A server and the command line name the actor themselves (`OperatorAudit`); the methods they call are recorded as that
action.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict
from datetime import datetime
from enum import Enum
from functools import partial, wraps
from operator import attrgetter
from typing import Any, ParamSpec, Protocol, TypeVar
from uuid import uuid4

from tasker.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.db.transactions import SharedTransactions
from tasker.errors import (
    ApprovalDecided,
    ApprovalNotFound,
    DeadLetterNotFound,
    ScheduleNotFound,
    StateMachineError,
    StepNotFound,
    TaskerError,
    TaskNotFound,
    UsageError,
)
from tasker.views.fleet import RecordedAction

_log = logging.getLogger("tasker.api")


@dataclass(frozen=True, slots=True)
class OperatorAction:
    """Request of an operator that changes something: `endpoint` is the action, `path` its subject.

    `proof` is how the actor is known: `jwt`, `api_key`, `disabled` (a server without authentication), `os_user`, or
    `link` (a signed link of an approval).
    """

    actor: str
    proof: str
    endpoint: str
    path: str
    request_id: str
    address: str | None = None


class AuditLog:
    """Audit log in `tasker.operator_actions`. Methods raise `DatabaseError` unless stated otherwise."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def asked(self, action: OperatorAction, status: int | None = None) -> str:
        """Record an action and return its identifier.

        `status` is the final status if the row is part of the action's transaction. Otherwise the row is written before
        anything is done, so that no action lacks a row.
        """
        ((identifier,),) = await self._connection.execute(
            query("operators", "asked"), {**asdict(action), "status": status}
        )
        return str(identifier)

    async def list(
        self, *, actor: str | None = None, since: datetime | None = None, limit: int = 50
    ) -> Sequence[RecordedAction]:
        """Return the actions, newest first."""
        which = {"actor": actor, "since": since, "limit": limit}
        return [RecordedAction(*row) for row in await self._connection.execute(query("operators", "actions"), which)]

    async def answered(self, row: str, status: int) -> None:
        """Record the status of the response; if that fails, the action stays done and a warning is logged."""
        await self._write("answered", {"row": row, "status": status})

    async def failed(self, row: str, status: int, reason: str | None) -> None:
        """Record the failure of an action that already has a row; if that fails, a warning is logged."""
        await self._write("failed", {"row": row, "status": status, "refusal": reason})

    async def not_done(self, action: OperatorAction, row: str | None, status: int | None, reason: str | None) -> None:
        """Record that nothing was done, with status and reason; if that fails, a warning is logged.

        `row` is the identifier of the row that was rolled back with the attempt. If it was committed after all, because
        the connection was lost during the commit, it stays as it is.
        """
        await self._write("not_done", {**asdict(action), "row": row, "status": status, "refusal": reason})

    async def _write(self, name: str, params: Mapping[str, Any]) -> None:
        try:
            await self._connection.execute(query("operators", name), params)
        except TaskerError as error:
            which, status = params.get("endpoint") or params["row"], params["status"]
            _log.warning("recording the outcome of operator action %s (%s) failed: %s", which, status, error)


T = TypeVar("T")
FIRST_FAILURE = 400
"""Lowest HTTP status that means "not done"; exit codes are below it."""
HURRY_SECONDS = 2.0
"""Maximum time to record a cancelled action, because the caller that cancelled it does not want to wait."""
MOST_CHARACTERS = 300
PUBLIC_ERRORS = (
    *(StateMachineError, TaskNotFound, StepNotFound, DeadLetterNotFound, ScheduleNotFound, UsageError),
    *(ApprovalDecided, ApprovalNotFound),
)
"""Errors whose message is recorded. Messages of others may repeat a secret value, so only their type is recorded."""


class AuditRecorder(Protocol):
    """Writer of the audit log, such as `AuditLog`."""

    async def asked(self, action: OperatorAction, status: int | None = None) -> str:
        """Record that the action was requested, and return the id of the record."""
        ...

    async def answered(self, row: str, status: int) -> None:
        """Record the status of the answer."""
        ...

    async def failed(self, row: str, status: int, reason: str | None) -> None:
        """Record that an action failed after it had begun."""
        ...

    async def not_done(self, action: OperatorAction, row: str | None, status: int | None, reason: str | None) -> None:
        """Record that an action was not done."""
        ...


class _State(Enum):
    NOTHING = "no operator action was recorded yet"
    BEGUN = "there is a row from before, without a status"
    DONE = "what was tried last is done, and its row with it"
    UNDONE = "what was tried last was rolled back, with its row"


class OperatorAudit:
    """Audit of one operator action, recorded in `log`.

    A completed action has its record in the same transaction, with the status `done`; a refused or failed one gets its
    record after the rollback. An action of several transactions is recorded before the first one, without a status
    until the last one has ended.
    """

    def __init__(self, log: AuditRecorder, action: OperatorAction, done: int) -> None:
        self._log, self._action, self._done = log, action, done
        self._state = _State.NOTHING
        self._row: str | None = None
        self._reason: str | None = None
        self._over = False

    @classmethod
    def current(cls) -> OperatorAudit | None:
        """Return the action in progress here, or None, also in an asyncio task that outlived its action."""
        audit = _current.get()
        return None if audit is None or audit._over else audit

    async def record(
        self, use: Callable[[], Awaitable[T]], answered: Callable[[T], int], failed: Callable[[Exception], int]
    ) -> T:
        """Run `use` and return its result. Operator actions inside it are recorded as this one.

        A record is also written if `use` changes nothing. `answered` and `failed` return the status of an answer and of
        an error; the status of a cancelled action stays unknown.
        """
        before = _current.set(self)
        try:
            answer = await use()
        except Exception as error:
            await self._failed(failed(error), self._reason or _refusal_reason(error))
            raise
        except BaseException:
            await self._given_up()
            raise
        finally:
            self._over = True
            _current.reset(before)
        await self._answered(answered(answer))
        return answer

    async def begin(self) -> None:
        """Record the action before anything is done. Raises `DatabaseError`."""
        self._row = await self._log.asked(self._action)
        self._state = _State.BEGUN

    async def act(self, lending: SharedTransactions | None, do: Callable[[], Awaitable[T]]) -> T:
        """Run `do`, which changes something, with its record in one transaction of `lending`, and return its result.

        Without `lending` the record is written before. An action inside another recorded action is not recorded again.
        """
        if _within.get() is self or self._state is _State.BEGUN:
            return await do()
        before = _within.set(self)
        try:
            if lending is not None:
                return await self._together(lending, do)
            await self.begin()
            return await do()
        finally:
            _within.reset(before)

    async def _together(self, lending: SharedTransactions, do: Callable[[], Awaitable[T]]) -> T:
        async def with_its_row() -> T:
            self._row = await AuditLog(lending).asked(self._action, self._done)
            return await do()

        self._row = self._reason = None
        try:
            answer = await lending.together(with_its_row)
        except BaseException as error:
            self._state, self._reason = _State.UNDONE, _refusal_reason(error)
            raise
        self._state = _State.DONE
        return answer

    async def _answered(self, status: int) -> None:
        if status >= FIRST_FAILURE:
            await self._failed(status, self._reason)
        elif self._row is None:
            await self._log.not_done(self._action, None, status, None)
        elif self._state is not _State.DONE or status != self._done:
            await self._log.answered(self._row, status)

    async def _failed(self, status: int | None, reason: str | None) -> None:
        """Record a failure, unless the change is committed: then it stays recorded as done, even if something fails
        afterwards."""
        if self._state is _State.BEGUN and self._row is not None:
            if status is not None:
                await self._log.failed(self._row, status, reason)
        elif self._state is not _State.DONE:
            await self._log.not_done(self._action, self._row, status, reason)

    async def _given_up(self) -> None:
        try:
            async with asyncio.timeout(HURRY_SECONDS):
                await self._failed(None, GIVEN_UP)
        except TimeoutError:
            _log.warning("recording that %s was abandoned by %s failed", self._action.endpoint, self._action.actor)


def _refusal_reason(error: BaseException) -> str:
    """Return the reason why an action was not done, without details that may be secret."""
    if isinstance(error, PUBLIC_ERRORS):
        return " ".join(error.message.replace("\0", "").split())[:MOST_CHARACTERS]
    if isinstance(error, TaskerError):
        return error.error_type
    return type(error).__name__ if isinstance(error, Exception) else GIVEN_UP


GIVEN_UP = "given up before it was done"
_current: ContextVar[OperatorAudit | None] = ContextVar("asking", default=None)
_within: ContextVar[OperatorAudit | None] = ContextVar("within", default=None)
"""Action whose change is being made; changes inside it are not recorded again."""


DONE, FAILED = 0, 1
WHO = ("actor", "resolved_by")
WHAT = ("task_uuid", "step", "target", "entry_uuid", "replay_uuid", "name")
"""Parameters that name the actor and the subject. Others may be secret, or are recorded with the change itself."""
P = ParamSpec("P")
Method = Callable[P, Coroutine[Any, Any, T]]


def audited(
    endpoint: str, connection: str = "_engine.connection", *, several: bool = False
) -> Callable[[Method[P, T]], Method[P, T]]:
    """Decorate a service method that is an operator action; called by a program it is recorded as `endpoint`.

    The change and its record are one transaction. With `several`, or if no connection is lent, the method has its own
    transactions, and the record is written before the first. `connection` is the attribute path of the service's
    connection. If the action cannot be recorded, it is not done.
    """

    def decorate(method: Method[P, T]) -> Method[P, T]:
        signature = inspect.signature(method)

        @wraps(method)
        async def recorded(*args: P.args, **kwargs: P.kwargs) -> T:
            statements, call = attrgetter(connection)(args[0]), partial(method, *args, **kwargs)
            lending = statements if isinstance(statements, SharedTransactions) and not several else None
            if (asking := OperatorAudit.current()) is not None:
                return await asking.act(lending, call)
            arguments = signature.bind(*args, **kwargs).arguments
            asking = OperatorAudit(AuditLog(statements), _action(endpoint, arguments), DONE)
            return await asking.record(lambda: asking.act(lending, call), lambda done: DONE, lambda error: FAILED)

        return recorded

    return decorate


def _action(endpoint: str, given: dict[str, Any]) -> OperatorAction:
    return OperatorAction(
        actor=next((given[name] for name in WHO if given.get(name)), None) or os_user(),
        proof="os_user",
        endpoint=endpoint,
        path=" ".join(str(given[name]) for name in WHAT if given.get(name)),
        request_id=str(uuid4()),
        address=socket.gethostname(),
    )


def os_user() -> str:
    """Return the name of the operating system's user, or "unknown"."""
    import getpass  # imports termios, which most processes do not need

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
