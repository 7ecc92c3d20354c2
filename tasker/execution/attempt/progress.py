"""Detection of handlers whose checkpoints make no progress."""

from __future__ import annotations

from collections import deque

from tasker.contracts.execution import Failure
from tasker.execution.attempt.storable_failure import make_storable
from tasker.execution.attempt.values import Checkpoint
from tasker.lifecycle.storable import encode

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
        f"{handler} yields checkpoints without progress: {LIMIT} in a row were nothing new, the last one at cursor "
        f"{position.cursor!r:.80} after {position.items_processed} items; after a yield it runs from its top and must "
        "go on from context.checkpoint_cursor"
    )
    metadata = {"cursor": position.cursor, "items_processed": position.items_processed}
    return make_storable(Failure(message, "checkpoint_without_progress", False, metadata=metadata, handler=handler))
