"""Ranges, sums and means over batches."""

from __future__ import annotations

import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Generic, TypeVar

from tasker.dataclasses import dataclass
from tasker.errors import ValidationError
from tasker.handlers.batch_outcomes import no_batches, wire_outcome
from tasker.handlers.batch_worker import BatchWorkerOutcome
from tasker.handlers.dependency_results import names_with_prefix, unwrap
from tasker.handlers.outcome_forms import BATCH_KEY, BatchType, batch_id
from tasker.handlers.readable import yes_or_no
from tasker.handlers.results import StepHandlerResult, described

T = TypeVar("T")


@dataclass
class BatchAggregationScenario:
    """Results of the batchable step and of the workers by step name, unwrapped.

    `worker_count` counts the results that are present; a worker resolved by an operator has none and is listed in
    `missing`.
    """

    is_no_batches: bool
    batchable_result: dict[str, Any]
    batch_results: dict[str, dict[str, Any]]
    worker_count: int
    expected_worker_count: int = 0
    missing: list[str] = field(default_factory=list)

    @classmethod
    def detect(
        cls, dependency_results: dict[str, Any], batchable_step_name: str, batch_worker_prefix: str
    ) -> BatchAggregationScenario:
        """Return the scenario according to the batchable step's outcome, never by names alone.

        Raises `ValidationError` if there is neither a `no_batches` outcome nor a worker's result.
        """
        batchable = unwrap(dependency_results.get(batchable_step_name)) or {}
        workers = _workers(dependency_results, batch_worker_prefix)
        outcome = batchable.get(BATCH_KEY) or {}
        if outcome.get("type") == BatchType.NO_BATCHES or (workers and all(w.get("no_op") for w in workers.values())):
            return cls(True, batchable, {}, 0)
        if not workers:
            raise ValidationError(
                f"no batches to aggregate: {batchable_step_name!r} did not answer no_batches, "
                f"and no step named {batch_worker_prefix!r} and a number has a result",
                hint=f"results are present for: {', '.join(sorted(dependency_results)) or 'no step'}",
            )
        expected = outcome.get("worker_count") or len(workers)
        return cls(False, batchable, workers, len(workers), expected, _missing(workers, batch_worker_prefix, expected))

    @yes_or_no
    def no_batches(self) -> bool:
        """True if no worker processed any item."""
        return self.is_no_batches


@dataclass(frozen=True)
class Batches(Generic[T]):
    """Argument of a function under `@batch_aggregator`.

    `results` are those of the workers by step name, in the order of the batches, each converted to the decorator's
    type; without batches it is empty and `no_batches` is True. `missing` lists workers without a result because an
    operator resolved them. `analysis` is the result of the batchable step.
    """

    results: dict[str, T]
    analysis: dict[str, Any]
    missing: list[str]
    no_batches: bool

    @classmethod
    def of(cls, scenario: BatchAggregationScenario, made: Callable[[str, dict[str, Any]], T]) -> Batches[T]:
        """Return the batches of a scenario; `made` converts a worker's name and result to the result type."""
        results = {name: made(name, result) for name, result in scenario.batch_results.items()}
        return cls(results, scenario.batchable_result, scenario.missing, scenario.is_no_batches)


def _workers(results: Mapping[str, Any], prefix: str) -> dict[str, dict[str, Any]]:
    pattern = re.compile(re.escape(prefix) + r"_?\d+")
    names = [name for name in names_with_prefix(results, prefix) if pattern.fullmatch(name)]
    return {name: unwrap(results[name]) for name in names if unwrap(results[name]) is not None}


def _missing(workers: Mapping[str, Any], prefix: str, expected: int) -> list[str]:
    stem = prefix if prefix.endswith("_") else f"{prefix}_"
    return [name for name in (f"{stem}{batch_id(i)}" for i in range(expected)) if name not in workers]


def total(results: Iterable[Mapping[str, Any]], key: str) -> float:
    """Return the sum of one field; results without it are skipped."""
    return sum(result.get(key) or 0 for result in results)


def best(results: Iterable[Mapping[str, Any]], key: str) -> Mapping[str, Any] | None:
    """Return the result with the greatest value of one field; None if no result has the field."""
    present = [result for result in results if result.get(key) is not None]
    return max(present, key=lambda result: result[key], default=None)


def weighted_average(results: Iterable[Mapping[str, Any]], value: str, weight: str) -> float:
    """Return the average of `value`, weighted by `weight`; 0.0 if all weights are 0."""
    pairs = [(result.get(value) or 0.0, result.get(weight) or 0) for result in results]
    weights = sum(part for _, part in pairs)
    return sum(number * part for number, part in pairs) / weights if weights else 0.0


def merged_counts(results: Iterable[Mapping[str, Any]], key: str) -> dict[str, int]:
    """Return the sum of dictionaries of counts."""
    counts: Counter[str] = Counter()
    for result in results:
        counts.update(result.get(key) or {})
    return dict(counts)


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
    batch_count = math.ceil(total_items / batch_size)
    return batch_count if max_workers is None else min(batch_count, max_workers)


def optimal_batch_size(item_processing_time_ms: float) -> int:
    """Return the number of items per batch for batches of about 7.5 minutes, from 100 to 10,000."""
    if not _is_above_zero(item_processing_time_ms):
        raise ValidationError(f"item_processing_time_ms must be above 0, found {described(item_processing_time_ms)}")
    ideal_size = TARGET_BATCH_MS / min(item_processing_time_ms, TARGET_BATCH_MS)
    return max(SMALLEST_BATCH, math.ceil(min(ideal_size, LARGEST_BATCH)))


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


NO_OP_REASON = "NoBatches scenario - no items to process"


def analysis_result(
    worker_template_name: str,
    cursor_configs: Sequence[Any],
    total_items: int | None,
    data: Mapping[str, Any],
    metadata: dict[str, Any] | None,
    worker_count: int | None = None,
) -> StepHandlerResult:
    """Return the result of the analyzing step. Raises `ValidationError` for a wrong `worker_count`."""
    if not cursor_configs:
        return no_batches_result({"reason": "empty_dataset", **data}, metadata, total_items or 0)
    if worker_count is not None and worker_count != len(cursor_configs):
        raise ValidationError(f"worker_count is {worker_count} but there are {len(cursor_configs)} cursor_configs")
    outcome = wire_outcome(worker_template_name, cursor_configs, total_items)
    counts = {"worker_count": outcome["worker_count"], "total_items": outcome["total_items"]}
    return StepHandlerResult.success({**counts, **data, BATCH_KEY: outcome}, metadata)


def no_batches_result(
    data: Mapping[str, Any], metadata: dict[str, Any] | None, total_items: int = 0
) -> StepHandlerResult:
    """Return the result of an analyzing step without batches."""
    result = {"worker_count": 0, "total_items": total_items, **data, BATCH_KEY: no_batches().to_dict()}
    return StepHandlerResult.success(result, metadata)


def no_op_result(batch_id: str) -> StepHandlerResult:
    """Return the result of the placeholder worker."""
    result = {"no_op": True, "reason": NO_OP_REASON, "batch_id": batch_id, "items_processed": 0, "processed_count": 0}
    return StepHandlerResult.success(result, {"no_op": True})


def worker_result(
    outcome: BatchWorkerOutcome, data: Mapping[str, Any] | None, metadata: dict[str, Any] | None
) -> StepHandlerResult:
    """Return the result of a worker; the count is stored as `items_processed` and `processed_count`."""
    counts = {**outcome.model_dump(), "processed_count": outcome.items_processed}
    return StepHandlerResult.success({**counts, **(data or {})}, metadata)


def aggregation_result(totals: Mapping[str, Any], worker_count: int) -> StepHandlerResult:
    """Return the result of the aggregating step."""
    return StepHandlerResult.success({**totals, "worker_count": worker_count})
