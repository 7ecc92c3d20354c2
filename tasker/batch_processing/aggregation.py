"""Input of a convergence step: the results of its batches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, Generic, TypeVar

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.expansion.outcome_forms import BATCH_KEY, BatchType, batch_id
from tasker.contracts.readable import yes_or_no
from tasker.errors import ValidationError
from tasker.types.dependency_results import names_with_prefix, unwrap

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
