"""Audit of operator actions: the record of each action, and the moment at which it is written."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from enum import Enum
from typing import Protocol, TypeVar

from tasker.db.together import SharedTransactions
from tasker.errors import (
    DeadLetterNotFound,
    StateMachineError,
    StepNotFound,
    TaskerError,
    TaskNotFound,
    UsageError,
)
from tasker.services.server.operator_log import AuditLog, OperatorAction

T = TypeVar("T")
FIRST_FAILURE = 400
"""Lowest HTTP status that means "not done"; exit codes are below it."""
HURRY_SECONDS = 2.0
"""Maximum time to record a cancelled action, because the caller that cancelled it does not want to wait."""
MOST_CHARACTERS = 300
TELLING = (StateMachineError, TaskNotFound, StepNotFound, DeadLetterNotFound, UsageError)
"""Errors whose message is recorded. Messages of others may repeat a secret value, so only their type is recorded."""
_log = logging.getLogger("tasker.api")


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
        found = _current.get()
        return None if found is None or found._over else found

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
            await self._failed(failed(error), self._reason or _told(error))
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
            self._state, self._reason = _State.UNDONE, _told(error)
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
        """Record a failure, unless the change is committed: then it stays recorded as done, whatever fails
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


def _told(error: BaseException) -> str:
    """Return the reason why an action was not done, without details that may be secret."""
    if isinstance(error, TELLING):
        return " ".join(error.message.replace("\0", "").split())[:MOST_CHARACTERS]
    if isinstance(error, TaskerError):
        return error.error_type
    return type(error).__name__ if isinstance(error, Exception) else GIVEN_UP


GIVEN_UP = "given up before it was done"
_current: ContextVar[OperatorAudit | None] = ContextVar("asking", default=None)
_within: ContextVar[OperatorAudit | None] = ContextVar("within", default=None)
"""Action whose change is being made; changes inside it are not recorded again."""
