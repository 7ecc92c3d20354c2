"""Submissions whose answer was lost: finds out for the caller whether the tasks exist."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

from tasker.contracts.backoff import BackoffPolicy
from tasker.db.queries import query
from tasker.errors import (
    ConnectionLost,
    DatabaseError,
    DatabaseUnavailable,
    LockTimeout,
    PoolExhausted,
    StatementTimeout,
)
from tasker.errors.remedies import remedy
from tasker.services.engine.answers import SubmitAnswer
from tasker.services.engine.calls import Engine

DUPLICATED = query("tasks", "duplicated")
AGAIN = "submit it again with the same idempotency_key, which creates it once; without a key check first: {}"
PATIENCE_SECONDS = 10.0
"""Seconds for which a submission is repeated after its connection was lost."""
REPEATS = BackoffPolicy(0.1, 1.0)
T = TypeVar("T")
First: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[SubmitAnswer]]


async def submit_with_recovery(
    engine: Engine,
    args: Mapping[str, Any],
    identities: Mapping[str, str],
    first: First | None = None,
) -> SubmitAnswer:
    """Submit exactly once; see `Engine.submit`. `identities` are those of the tasks, by their ids.

    `first` is called instead of `Engine.submit` the first time.

    A statement that timed out is over: its tasks exist if the timeout hit during the commit. A lost connection does not
    end the transaction, so reading would prove nothing: the same submission is repeated. Its tasks have the same
    identities, and the unique index makes it wait for a commit in progress and create nothing after it. In both cases
    the answer may lack tasks that exist. Raises as `Engine.submit`, and `ConnectionLost` if the outcome stays unknown.
    """
    try:
        return await (first or engine.submit)(args)
    except ConnectionLost as lost:
        return await _repeated(engine, args, identities, lost)
    except StatementTimeout as error:
        try:
            stored = await _are_stored(engine, identities)
        except DatabaseError as reading:
            raise _unknown(error) from reading
        if not stored:
            raise
        return SubmitAnswer()


async def retry_read_once(read: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `read`, which changes nothing, and repeat it once if its connection is lost."""
    try:
        return await read()
    except ConnectionLost:
        return await read()


async def _repeated(
    engine: Engine, args: Mapping[str, Any], identities: Mapping[str, str], lost: ConnectionLost
) -> SubmitAnswer:
    """Repeat the submission. Errors that only keep the repetition from an answer prove nothing about the first one."""
    failures = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                with suppress(DatabaseUnavailable, PoolExhausted):
                    try:
                        return await engine.submit(args)
                    except StatementTimeout:  # waited for the first submission, or its own commit was slow
                        if await _are_stored(engine, identities):
                            return SubmitAnswer()
                    except LockTimeout:  # the first submission is not over
                        pass
                await asyncio.sleep(REPEATS.pause(failures))
                failures += 1
    raise _unknown(lost) from lost


async def _are_stored(engine: Engine, identities: Mapping[str, str]) -> bool:
    """Return True if the tasks exist. They were created in one transaction, so one of them stands for all."""
    rows = await engine.connection.execute(DUPLICATED, {"identities": list(identities.values())})
    return any(task in identities for _, task, *_ in rows)


def _unknown(error: DatabaseError) -> ConnectionLost:
    return ConnectionLost(
        f"{error.message}; it is not known whether the task was created",
        hint=remedy(AGAIN, "tasker task list", " --since 10m"),
    )
