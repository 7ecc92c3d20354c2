"""Checkpoints saved during an attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tasker.contracts.execution import Failure
from tasker.execution.attempt import log
from tasker.execution.attempt.covering import OutcomeRedactor
from tasker.execution.attempt.storable_failure import make_storable
from tasker.execution.attempt.values import Attempt, Checkpoint


async def save(attempt: Attempt, position: Checkpoint, limit: float, handler: str) -> Attempt | Failure | None:
    """Save the position, waiting at most `limit` seconds.

    Returns the attempt that continues from there, a retryable failure when the save failed, or None when the claim was
    lost.
    """
    claim, count = attempt.claim, position.items_processed
    log.info(
        "checkpoint_yield_step_event",
        claim,
        cursor=OutcomeRedactor(attempt).over(position.cursor),
        items_processed=count,
    )
    try:
        async with asyncio.timeout(limit):
            saved = await attempt.writes.save(attempt, position)
    except Exception as error:
        return _failed(error, limit, handler)
    if saved is None:
        return None
    log.info("checkpoint_saved", claim, history_length=len(saved.get("history", ())))
    return _resumed(attempt, saved)


def _resumed(attempt: Attempt, saved: Mapping[str, Any]) -> Attempt:
    return replace(attempt, claim=replace(attempt.claim, checkpoint=saved))


def _failed(error: Exception, limit: float, handler: str) -> Failure:
    why = f"no answer within {limit:g} seconds" if isinstance(error, TimeoutError) else str(error) or repr(error)
    message = f"the checkpoint could not be saved: {why}; the step goes on from the last one that was"
    metadata = {"exception_type": type(error).__name__}
    return make_storable(Failure(message, "checkpoint_save_failed", True, metadata=metadata, handler=handler))
