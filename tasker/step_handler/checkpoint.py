"""Save progress and start over from it."""

from __future__ import annotations

from typing import Any, NoReturn

from tasker.errors import ValidationError


class CheckpointYield(BaseException):
    """Leaves the handler on the way to the worker, which stores the checkpoint and runs the step again.

    Not an `Exception`, so that a handler's `except Exception` lets it pass. `finally` blocks run as usual.
    """

    def __init__(self, cursor: Any, items_processed: int, accumulated_results: dict[str, Any] | None = None) -> None:
        super().__init__(cursor, items_processed, accumulated_results)
        self.cursor = cursor
        self.items_processed = items_processed
        self.accumulated_results = accumulated_results

    def __str__(self) -> str:
        """The position, for logs."""
        return f"checkpoint at cursor {self.cursor!r} after {self.items_processed} items"


def checkpoint_yield(cursor: Any, items_processed: int, accumulated_results: dict[str, Any] | None = None) -> NoReturn:
    """Stop here, store this position, and run the step again from the top of its handler.

    `cursor` is any JSON and says where to go on; `items_processed` is the total so far, over all runs;
    `accumulated_results` should stay small. Costs no attempt. Raises `ValidationError` for a negative or non-integer
    `items_processed`.
    """
    if type(items_processed) is not int or items_processed < 0:
        raise ValidationError(f"items_processed must be an integer of 0 or more, found {items_processed!r}")
    raise CheckpointYield(cursor, items_processed, accumulated_results)
