"""Positions that a handler yields: saved before it is called again, and watched for a handler that repeats itself."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tasker.execution.attempt import listeners
from tasker.execution.attempt.attempt import Attempt, Checkpoint
from tasker.execution.attempt.settle import OutcomeRedactor, make_storable
from tasker.handlers.claims import Failure
from tasker.json_values import encode

LIMIT = 20
"""Number of repeated positions that fails a step.

It equals the length of a checkpoint's history (`checkpoint_v1`): a history without a new position shows no progress. A
handler that returns to an old position for a good reason does so once or twice.
"""


class CheckpointProgress:
    """The latest positions of one attempt, used to notice a handler that repeats itself."""

    def __init__(self) -> None:
        self._seen: deque[int] = deque(maxlen=LIMIT)
        self._repeated = 0

    def failure(self, position: Checkpoint, handler: str) -> Failure | None:
        """Return a permanent failure for the `LIMIT`th known position in a row, else None."""
        text = encode([position.cursor, position.items_processed, position.accumulated_results]).text
        self._repeated = self._repeated + 1 if hash(text) in self._seen else 0
        self._seen.append(hash(text))
        return _circling(position, handler) if self._repeated >= LIMIT else None


def _circling(position: Checkpoint, handler: str) -> Failure:
    message = (
        f"{handler} yields checkpoints without progress: {LIMIT} in a row repeat earlier ones, the last one at cursor "
        f"{position.cursor!r:.80} after {position.items_processed} items; after a yield it runs from its top and must "
        "go on from context.checkpoint_cursor"
    )
    metadata = {"cursor": position.cursor, "items_processed": position.items_processed}
    return make_storable(Failure(message, "checkpoint_without_progress", False, metadata=metadata, handler=handler))


async def save(attempt: Attempt, position: Checkpoint, limit: float, handler: str) -> Attempt | Failure | None:
    """Save the position, waiting at most `limit` seconds.

    Returns the attempt that continues from there, a retryable failure when the save failed, or None when the claim was
    lost.
    """
    claim, count = attempt.claim, position.items_processed
    listeners.info(
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
    listeners.info("checkpoint_saved", claim, history_length=len(saved.get("history", ())))
    return _resumed(attempt, saved)


def _resumed(attempt: Attempt, saved: Mapping[str, Any]) -> Attempt:
    return replace(attempt, claim=replace(attempt.claim, checkpoint=saved))


def _failed(error: Exception, limit: float, handler: str) -> Failure:
    why = f"no answer within {limit:g} seconds" if isinstance(error, TimeoutError) else str(error) or repr(error)
    message = f"the checkpoint could not be saved: {why}; the next attempt continues from the last saved one"
    metadata = {"exception_type": type(error).__name__}
    return make_storable(Failure(message, "checkpoint_save_failed", True, metadata=metadata, handler=handler))
