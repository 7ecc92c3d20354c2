"""Splitting of a number of items into ranges: 0-indexed, start inclusive, end exclusive."""

from __future__ import annotations

import math
import operator
from typing import Any

from tasker.errors import ValidationError
from tasker.types.printable import described

TARGET_BATCH_MS = 7.5 * 60 * 1000
SMALLEST_BATCH, LARGEST_BATCH = 100, 10_000


def ranges_by_size(
    total_items: int, batch_size: int, step_size: int = 1, max_batches: int | None = None
) -> list[tuple[int, int]]:
    """Return ranges of `batch_size`, the last one shorter.

    `max_batches` limits their number, never the items: if it applies, the batches get larger (1000 items by 100, at
    most 5: 5 x 200). Boundaries are multiples of `step_size`. No range is empty. Raises `ValidationError` for invalid
    numbers.
    """
    total_items, step_size = whole_number("total_items", total_items, 0), whole_number("step_size", step_size, 1)
    batch_size = _size("batch_size", batch_size)
    max_batches = None if max_batches is None else _size("max_batches", max_batches)
    count = worker_count(total_items, batch_size, max_batches)
    is_capped = max_batches is not None and count * batch_size < total_items
    return _cut(total_items, _share(total_items, count) if is_capped else batch_size, step_size)


def ranges_by_workers(total_items: int, workers: int) -> list[tuple[int, int]]:
    """Return at most `workers` ranges of equal size, the last one shorter. No range is empty."""
    total_items = whole_number("total_items", total_items, 0)
    return _cut(total_items, _share(total_items, _size("worker_count", workers)), 1)


def worker_count(total_items: int, batch_size: int, max_workers: int | None = None) -> int:
    """Return the number of batches."""
    wanted = math.ceil(total_items / batch_size)
    return wanted if max_workers is None else min(wanted, max_workers)


def optimal_batch_size(item_processing_time_ms: float) -> int:
    """Return the number of items per batch for batches of about 7.5 minutes, from 100 to 10,000."""
    if not _is_above_zero(item_processing_time_ms):
        raise ValidationError(f"item_processing_time_ms must be above 0, found {described(item_processing_time_ms)}")
    wanted = TARGET_BATCH_MS / min(item_processing_time_ms, TARGET_BATCH_MS)
    return max(SMALLEST_BATCH, math.ceil(min(wanted, LARGEST_BATCH)))


def _is_above_zero(value: Any) -> bool:
    return isinstance(value, (int, float)) and value > 0  # False for nan, too


def whole_number(name: str, value: Any, least: int) -> int:
    """Return the value as an `int`. Raises `ValidationError` if it is not an integer or is less than `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        expected = f"a whole number of {least} or more"
        raise ValidationError(f"{name} must be {expected}, found {described(value)}") from None
    if number < least:
        raise ValidationError(f"{name} must be {least} or more, found {number}")
    return number


def _size(name: str, value: Any) -> int:
    """Return a number of 1 or more; a fraction, such as the result of a division, is rounded up."""
    is_fraction = isinstance(value, float) and math.isfinite(value) and value >= 1
    return math.ceil(value) if is_fraction else whole_number(name, value, 1)


def _share(total: int, count: int) -> int:
    return math.ceil(total / count)


def _cut(total: int, size: int, step: int) -> list[tuple[int, int]]:
    if total == 0:
        return []
    size = math.ceil(size / step) * step
    return [(start, min(start + size, total)) for start in range(0, total, size)]
