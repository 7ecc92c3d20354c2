"""Splitting a number of items into ranges: 0-indexed, start inclusive, end exclusive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tasker.handlers.batchable import BatchWorkerConfig as EngineShare
from tasker.handlers.outcome_forms import batch_id
from tasker_core.types import CursorConfig, RustCursorConfig


class BatchWorkerConfig(EngineShare):
    """One worker's share: a range with its position among the workers, from 0."""

    def to_dict(self) -> dict[str, Any]:
        """Return the share as plain data."""
        return dict(vars(self))


def ranges(total_items: int, size: int) -> list[tuple[int, int]]:
    """Return ranges of `size` items; the last one may be shorter."""
    return [(start, min(start + size, total_items)) for start in range(0, total_items, size)]


def batch_size_within(total_items: int, batch_size: int, max_batches: int | None) -> int:
    """Return the size, increased if there would be more than `max_batches`. Raises `ValueError` for a size below 1."""
    if batch_size <= 0:
        raise ValueError(f"batch_size must be 1 or more, found {batch_size}")
    return max(batch_size, math.ceil(total_items / max_batches)) if max_batches and max_batches > 0 else batch_size


def shares(total_items: int, worker_count: int) -> list[BatchWorkerConfig]:
    """Return at most `worker_count` equal shares. Raises `ValueError` for less than one worker."""
    if worker_count <= 0:
        raise ValueError(f"worker_count must be 1 or more, found {worker_count}")
    cut = ranges(total_items, math.ceil(total_items / worker_count)) if total_items > 0 else []
    return [
        BatchWorkerConfig(batch_id(index), start, end, end - start, index, worker_count)
        for index, (start, end) in enumerate(cut)
    ]


def wire_cursors(configs: Sequence[CursorConfig]) -> list[RustCursorConfig]:
    """Return the cursors in the format that the engine reads."""
    return [
        RustCursorConfig(
            batch_id=batch_id(index),
            start_cursor=config.start_cursor,
            end_cursor=config.end_cursor,
            batch_size=config.end_cursor - config.start_cursor,
        )
        for index, config in enumerate(configs)
    ]
