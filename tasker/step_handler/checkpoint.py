"""Checkpoints: a handler saves its progress and is run again from there."""

from __future__ import annotations

from typing import Any, NoReturn

from tasker.errors import ValidationError


class CheckpointYield(BaseException):
    """Exception that a handler raises to have the worker store a checkpoint and run the step again.

    It is not an `Exception`, so a handler's `except Exception` does not catch it. `finally` blocks run as usual.
    """

    def __init__(self, cursor: Any, items_processed: int, accumulated_results: dict[str, Any] | None = None) -> None:
        super().__init__(cursor, items_processed, accumulated_results)
        self.cursor = cursor
        self.items_processed = items_processed
        self.accumulated_results = accumulated_results

    def __str__(self) -> str:
        return f"checkpoint at cursor {self.cursor!r} after {self.items_processed} items"


def checkpoint_yield(cursor: Any, items_processed: int, accumulated_results: dict[str, Any] | None = None) -> NoReturn:
    """Stop here, store a checkpoint, and run the step's handler again from the top.

    `cursor` is any JSON value that tells the handler where to continue; `items_processed` is the total over all runs so
    far; `accumulated_results` should stay small. A checkpoint does not use up an attempt. Raises `ValidationError` for
    a negative or non-integer `items_processed`.
    """
    if type(items_processed) is not int or items_processed < 0:
        raise ValidationError(f"items_processed must be an integer of 0 or more, found {items_processed!r}")
    raise CheckpointYield(cursor, items_processed, accumulated_results)
