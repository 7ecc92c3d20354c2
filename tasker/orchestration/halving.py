"""A batch with a value that the database refuses is halved until the culprit is alone; the others go on (rule 5)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from tasker.contracts.execution import Failure, Outcome, Verdict
from tasker.db.connection import DataRefused
from tasker.services.exchange import Result

Item = TypeVar("Item")
_log = logging.getLogger("tasker.orchestration")


async def halved(
    items: Sequence[Item],
    write: Callable[[Sequence[Item]], Awaitable[None]],
    refuse: Callable[[Item, DataRefused], Awaitable[None]],
) -> None:
    """Write the items together; when their values are refused, each half by itself. `refuse` gets who is alone then."""
    if not items:
        return
    try:
        await write(items)
    except DataRefused as error:
        if len(items) == 1:
            await refuse(items[0], error)
            return
        middle = len(items) // 2
        await halved(items[:middle], write, refuse)
        await halved(items[middle:], write, refuse)


def not_storable(result: Result, error: DataRefused) -> Result | None:
    """The failure in place of a result that cannot be stored. None when this is such a failure already: its step is
    left to its deadline, and to a person."""
    outcome = result.outcome
    if outcome.failure is not None and outcome.failure.error_type == Verdict.NOT_STORABLE:
        claim = outcome.claim
        _log.error("result_stuck step=%s task=%s reason=%s", claim.name, claim.task_uuid, error)
        return None
    failure = Failure(message=refusal(error), error_type=Verdict.NOT_STORABLE, retryable=False)
    return Result(Outcome(outcome.claim, outcome.duration_ms, failure=failure), result.plan)


def refusal(error: DataRefused) -> str:
    """What the database said, in text that can be stored."""
    return f"the result cannot be stored: {error.message}".encode("ascii", "backslashreplace").decode()
