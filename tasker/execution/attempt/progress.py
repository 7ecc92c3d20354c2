"""Whether the checkpoints of a handler lead anywhere."""

from __future__ import annotations

from collections import deque

from tasker.contracts.execution import Failure
from tasker.execution.attempt.storable_failure import make_storable
from tasker.execution.attempt.values import Checkpoint
from tasker.lifecycle.storable import encode

LIMIT = 20
"""As many positions as a checkpoint's history keeps (`checkpoint_v1`): when it holds nothing new, a person sees no
progress either. A handler that comes to an old position again for a good reason does so once or twice."""


class CheckpointProgress:
    """Remembers the latest positions of one attempt, to notice a handler that goes round in circles."""

    def __init__(self) -> None:
        self._seen: deque[int] = deque(maxlen=LIMIT)
        self._repeated = 0

    def failure(self, position: Checkpoint, handler: str) -> Failure | None:
        """A permanent failure for the `LIMIT`th position in a row that is one of those before it; else None."""
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
