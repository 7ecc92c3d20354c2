"""Cutting a number of items into ranges: 0-indexed, start inclusive, end exclusive (C-55, C-57, D-139, D-140)."""

from __future__ import annotations

import math

from tasker.errors import ValidationError

TARGET_BATCH_MS = 7.5 * 60 * 1000
SMALLEST_BATCH, LARGEST_BATCH = 100, 10_000


def ranges_by_size(
    total_items: int, batch_size: int, step_size: int = 1, max_batches: int | None = None
) -> list[tuple[int, int]]:
    """Ranges of `batch_size`, the last one shorter. `max_batches` caps their number, never the items: when it does, the
    size is computed anew (1000 by 100, 5 at most: 5 x 200, C-57).

    Boundaries are multiples of `step_size`. No range is empty.
    """
    _require_positive(batch_size=batch_size, step_size=step_size, max_batches=max_batches)
    count = worker_count(total_items, batch_size, max_batches)
    is_capped = max_batches is not None and count * batch_size < total_items
    return _cut(total_items, _share(total_items, count) if is_capped else batch_size, step_size)


def ranges_by_workers(total_items: int, workers: int) -> list[tuple[int, int]]:
    """At most `workers` ranges of equal size, the last one shorter. No range is empty."""
    _require_positive(worker_count=workers)
    return _cut(total_items, _share(total_items, workers), 1)


def worker_count(total_items: int, batch_size: int, max_workers: int | None = None) -> int:
    """How many batches there will be (C-57)."""
    wanted = math.ceil(total_items / batch_size)
    return wanted if max_workers is None else min(wanted, max_workers)


def optimal_batch_size(item_processing_time_ms: float) -> int:
    """Items per batch for batches of about 7.5 minutes, from 100 to 10,000 (C-59)."""
    if item_processing_time_ms <= 0:
        raise ValidationError(f"item_processing_time_ms must be above 0, found {item_processing_time_ms!r}")
    wanted = math.ceil(TARGET_BATCH_MS / item_processing_time_ms)
    return max(SMALLEST_BATCH, min(wanted, LARGEST_BATCH))


def _share(total: int, count: int) -> int:
    return math.ceil(total / count)


def _cut(total: int, size: int, step: int) -> list[tuple[int, int]]:
    if total < 0:
        raise ValidationError(f"total_items must be 0 or more, found {total}")
    if total == 0:
        return []
    size = math.ceil(size / step) * step
    return [(start, min(start + size, total)) for start in range(0, total, size)]


def _require_positive(**values: int | None) -> None:
    for name, value in values.items():
        if value is not None and value < 1:
            raise ValidationError(f"{name} must be 1 or more, found {value}")
