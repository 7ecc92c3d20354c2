"""Submissions whose answer did not come: the tasks exist or they do not, and whoever submitted is told which."""

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
from tasker.services.engine.answers import SubmitAnswer
from tasker.services.engine.calls import Engine

DUPLICATED = query("tasks", "duplicated")
PATIENCE_SECONDS = 10.0
"""How long a submission whose connection was lost is repeated before it is given up."""
REPEATS = BackoffPolicy(0.1, 1.0)
T = TypeVar("T")
First: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[SubmitAnswer]]


async def submit_with_recovery(
    engine: Engine,
    args: Mapping[str, Any],
    identities: Mapping[str, str],
    first: First | None = None,
) -> SubmitAnswer:
    """`Engine.submit`, once and for all; `identities` are those of the tasks, by their ids. `first` is called in its
    place the first time.

    A statement that ran out of time is over: its tasks exist when its commit was what took so long. A lost connection
    is not the end of the transaction, so looking would tell nothing: the same submission is made again. Its tasks have
    the same identities, whose index lets it wait for a commit that is still under way, and create nothing behind it.
    In both cases the answer may lack tasks that exist. Raises as `Engine.submit`; `ConnectionLost` when it is not known
    what became of them.
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
    """What `read` answers, which changes nothing: it is asked once more where its connection was lost meanwhile."""
    try:
        return await read()
    except ConnectionLost:
        return await read()


async def _repeated(
    engine: Engine, args: Mapping[str, Any], identities: Mapping[str, str], lost: ConnectionLost
) -> SubmitAnswer:
    """Nothing that only keeps the repetition from an answer says anything about the first submission."""
    failures = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                with suppress(DatabaseUnavailable, PoolExhausted):
                    try:
                        return await engine.submit(args)
                    except StatementTimeout:  # behind the first one, or because of its own commit
                        if await _are_stored(engine, identities):
                            return SubmitAnswer()
                    except LockTimeout:  # the first one is not over
                        pass
                await asyncio.sleep(REPEATS.pause(failures))
                failures += 1
    raise _unknown(lost) from lost


async def _are_stored(engine: Engine, identities: Mapping[str, str]) -> bool:
    """All of them are one transaction: they exist, or none of them does."""
    rows = await engine.connection.execute(DUPLICATED, {"identities": list(identities.values())})
    return any(task in identities for _, task, *_ in rows)


def _unknown(error: DatabaseError) -> ConnectionLost:
    return ConnectionLost(
        f"{error.message}; it is not known whether the task was created",
        hint="submit it again with the same idempotency_key, which creates it once; without one look first: "
        "tasker task list --since 10m",
    )
