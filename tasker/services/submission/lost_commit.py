"""Submission again when the answer to its commit was lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tasker.clock import BackoffPolicy
from tasker.db.sql_files import query
from tasker.engine.answers import SubmitAnswer
from tasker.engine.calls import Engine
from tasker.engine.write_listeners import WriteListeners
from tasker.errors import (
    ConnectionLost,
    DatabaseError,
    DatabaseUnavailable,
    LockTimeout,
    PoolExhausted,
    StatementTimeout,
)
from tasker.errors.remedies import remedy
from tasker.logging.lines import ids_of_task, log_line
from tasker.logging.trace_context import TraceContext
from tasker.plugins.hook_arguments import TaskSubmitted
from tasker.template.plan import Plan

if TYPE_CHECKING:
    from tasker.services.submission.submit import Draft

_log = logging.getLogger("tasker.submission")


def log_created_tasks(
    listeners: WriteListeners, plan: Plan, drafts: Sequence[Draft], answer: SubmitAnswer, began: float
) -> None:
    """Log and publish those of the drafts that became tasks, submitted at `began` (`perf_counter`)."""
    created = [draft for draft in drafts if draft.task_uuid in answer.created]
    listeners.submitted(plan, map(_submitted, created), began)
    if _log.isEnabledFor(logging.INFO):
        duration_ms = round((perf_counter() - began) * 1000)
        for draft in created:
            task, trace = draft.task_uuid, draft.item.get("trace")
            place = TraceContext(**trace) if trace else None
            ids = ids_of_task(task, _correlation(draft), plan.namespace, place)
            details = {"duration_ms": duration_ms, "template": plan.name, "step_count": answer.steps}
            log_line(_log, logging.INFO, f"Task initialized: task_uuid={task}", ids | details)


def _submitted(draft: Draft) -> TaskSubmitted:
    return TaskSubmitted(draft.task_uuid, _correlation(draft), **(draft.item.get("trace") or {}))


def _correlation(draft: Draft) -> str:
    correlation: str = draft.item["correlation"] or draft.task_uuid
    return correlation


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
