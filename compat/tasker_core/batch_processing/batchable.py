"""Helpers for the three roles of a batch: the step that splits the work, the workers, the step that aggregates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from tasker.handlers.batchable import BatchForms
from tasker.handlers.batchable import BatchWorkerConfig as EngineShare
from tasker.handlers.dependency_results import names_with_prefix
from tasker.handlers.outcome_forms import BATCH_KEY, batch_id
from tasker_core.answering import Answering
from tasker_core.models import DependencyResultsWrapper
from tasker_core.types import (
    BatchAnalyzerOutcome,
    BatchWorkerContext,
    BatchWorkerOutcome,
    CursorConfig,
    RustBatchWorkerInputs,
    RustCursorConfig,
    StepContext,
    StepHandlerResult,
    aggregate_batch_results,
    create_batches,
    no_batches,
)

__all__ = ["BatchAggregationScenario", "BatchWorkerConfig", "Batchable"]


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


@dataclass
class BatchAggregationScenario:
    """The batchable step's result and the workers' results by step name, without their envelopes."""

    is_no_batches: bool
    batchable_result: dict[str, Any]
    batch_results: dict[str, dict[str, Any]]
    worker_count: int

    @classmethod
    def detect(
        cls, dependency_results: dict[str, Any], batchable_step_name: str, batch_worker_prefix: str
    ) -> BatchAggregationScenario:
        """Return the scenario, with batches or without, by the result of the batchable step.

        Raises `ValueError` if that step has no result, or if it created batches and none has a result.
        """
        results = DependencyResultsWrapper.from_dict(dependency_results)
        analysis = results.get_results(batchable_step_name)
        if analysis is None:
            raise ValueError(f"the batchable step {batchable_step_name!r} has no result; there are: {results.keys()}")
        analysis = analysis if isinstance(analysis, dict) else {}
        outcome = analysis.get(BATCH_KEY)
        if isinstance(outcome, dict) and outcome.get("type") == "no_batches":
            return cls(True, analysis, {}, 0)
        workers = _workers(results, batch_worker_prefix)
        if not workers:
            raise ValueError(
                f"{batchable_step_name!r} did not answer no_batches, and no step whose name starts with "
                f"{batch_worker_prefix!r} has a result; there are: {results.keys()}"
            )
        return cls(False, analysis, workers, len(workers))

    def no_batches(self) -> bool:
        """Return True if no worker processed an item."""
        return self.is_no_batches


def _workers(results: DependencyResultsWrapper, prefix: str) -> dict[str, dict[str, Any]]:
    """Return the results in the order of the batches."""
    contents = {name: results.get_results(name) for name in names_with_prefix(dict.fromkeys(results), prefix)}
    return {name: value if isinstance(value, dict) else {} for name, value in contents.items()}


class Batchable(BatchForms[CursorConfig, BatchAnalyzerOutcome], Answering):
    """Mixin for a step handler. Ranges are 0-indexed, start inclusive, end exclusive."""

    cursor_class = CursorConfig
    analysis_class = BatchAnalyzerOutcome

    def create_cursor_configs(self, total_items: int, worker_count: int) -> list[BatchWorkerConfig]:
        """Return at most `worker_count` equal shares. Raises `ValueError` for less than one worker."""
        return shares(total_items, worker_count)

    def batch_analyzer_success(
        self,
        outcome: BatchAnalyzerOutcome | None = None,
        metadata: dict[str, Any] | None = None,
        worker_template_name: str = "batch_worker",
        cursor_configs: list[CursorConfig] | None = None,
        total_items: int | None = None,
        batch_metadata: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Return a result with one worker for each cursor.

        Without cursors it creates no batches, with the `reason` from the batch metadata.
        """
        if cursor_configs is not None:
            outcome = BatchAnalyzerOutcome(total_items=total_items, batch_metadata=batch_metadata or {})
            outcome.cursor_configs = cursor_configs
        if outcome is None:
            return self.no_batches_outcome("no_cursor_configs_provided")
        data = outcome.batch_metadata
        if not outcome.cursor_configs:
            return self.no_batches_outcome(data.get("reason", "empty_dataset"), data)
        count, total = len(outcome.cursor_configs), outcome.total_items or 0
        batches = create_batches(worker_template_name, count, wire_cursors(outcome.cursor_configs), total)
        result = {BATCH_KEY: batches.model_dump(), "worker_count": count, "total_items": total}
        optional = {"batch_metadata": data} if data else {}
        return self._succeeded({**result, **optional}, metadata, batch_analyzer=True)

    def no_batches_outcome(self, reason: str, metadata: dict[str, Any] | None = None) -> StepHandlerResult:
        """Return a result without work for workers; `metadata` is merged into the result."""
        result = {BATCH_KEY: {"type": no_batches().type}, "reason": reason, **(metadata or {})}
        return self._succeeded(result, None, batch_analyzer=True, no_batches=True)

    def get_batch_worker_inputs(self, context: StepContext) -> RustBatchWorkerInputs | None:
        """Return the inputs of this worker, or None if the step is not a batch worker or its inputs are invalid."""
        return RustBatchWorkerInputs.parse(context.step_inputs)

    def get_batch_context(self, context: StepContext) -> BatchWorkerContext | None:
        """Return this worker's batch with its checkpoint, or None if the step is not a batch worker."""
        return BatchWorkerContext.from_step_context(context)

    def create_batch_context(
        self,
        cursor_config: CursorConfig,
        batch_index: int,
        total_batches: int,
        batch_metadata: dict[str, Any] | None = None,
    ) -> BatchWorkerContext:
        """Create a batch explicitly, with a new id."""
        return BatchWorkerContext(
            batch_id=str(uuid4()),
            cursor_config=cursor_config,
            batch_index=batch_index,
            total_batches=total_batches,
            batch_metadata=batch_metadata or {},
        )

    def handle_no_op_worker(self, context: StepContext) -> StepHandlerResult | None:
        """Return the result of the placeholder for a task without batches, or None for a real worker."""
        inputs = self.get_batch_worker_inputs(context)
        if inputs is None or not inputs.is_no_op:
            return None
        result = {"batch_id": inputs.cursor.batch_id, "no_op": True, "processed_count": 0, "message": "no batches"}
        return StepHandlerResult.success({**result, "processed_at": datetime.now(UTC).isoformat()})

    def batch_worker_success(
        self,
        outcome: BatchWorkerOutcome | None = None,
        metadata: dict[str, Any] | None = None,
        items_processed: int | None = None,
        items_succeeded: int | None = None,
        items_failed: int = 0,
        items_skipped: int = 0,
        results: list[dict[str, Any]] | None = None,
        errors: list[dict[str, Any]] | None = None,
        last_cursor: int | None = None,
        batch_metadata: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Return the result of a batch; the counts take precedence over `outcome`.

        Returns a failure (`invalid_args`) if neither is given.
        """
        if items_processed is not None:
            succeeded = items_processed if items_succeeded is None else items_succeeded
            counts = (items_processed, succeeded, items_failed, items_skipped)
            outcome = BatchWorkerOutcome.counted(counts, results, errors, last_cursor, batch_metadata)
        if outcome is None:
            text = "batch_worker_success needs an outcome or items_processed, found neither"
            return self.failure(text, "invalid_args", retryable=False)
        return self._succeeded(_counts(outcome), metadata, batch_worker=True)

    def batch_worker_partial_failure(
        self, outcome: BatchWorkerOutcome, message: str | None = None, metadata: dict[str, Any] | None = None
    ) -> StepHandlerResult:
        """Return the result of a batch with some failed items: a success with `partial_failure` set."""
        details = {"partial_failure_message": message} if message else {}
        result = {**_counts(outcome), "partial_failure": True, **details}
        return self._succeeded(result, metadata, batch_worker=True, had_failures=True)

    def checkpoint_yield(
        self,
        cursor: int | str | dict[str, Any] | None,
        items_processed: int,
        accumulated_results: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Return a result that saves the progress; the step runs again from there."""
        result = {"type": "checkpoint_yield", "cursor": cursor, "items_processed": items_processed}
        optional = {} if accumulated_results is None else {"accumulated_results": accumulated_results}
        return StepHandlerResult.success({**result, **optional}, {"checkpoint_yield": True, "batch_worker": True})

    def detect_aggregation_scenario(
        self, dependency_results: dict[str, Any], batchable_step_name: str, batch_worker_prefix: str
    ) -> BatchAggregationScenario:
        """Return the input of the aggregating step. Raises `ValueError`."""
        return BatchAggregationScenario.detect(dependency_results, batchable_step_name, batch_worker_prefix)

    def no_batches_aggregation_result(self, zero_metrics: dict[str, Any] | None = None) -> StepHandlerResult:
        """Return the aggregate of a task without batches."""
        return self._succeeded({"worker_count": 0, "scenario": "no_batches", **(zero_metrics or {})}, None)

    def aggregate_batch_worker_results(
        self,
        scenario: BatchAggregationScenario,
        zero_metrics: dict[str, Any] | None = None,
        aggregation_fn: Callable[[dict[str, dict[str, Any]]], dict[str, Any]] | None = None,
    ) -> StepHandlerResult:
        """Return `aggregation_fn` of the workers' results by step name, or the results without it; `zero_metrics` if
        none."""
        if scenario.is_no_batches:
            return self.no_batches_aggregation_result(zero_metrics)
        results = scenario.batch_results
        totals = {"batch_results": results} if aggregation_fn is None else aggregation_fn(results)
        return self._succeeded({**totals, "worker_count": scenario.worker_count, "scenario": "with_batches"}, None)

    @staticmethod
    def aggregate_worker_results(worker_results: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the standard totals; `batch_count` counts every entry of the list."""
        return {**aggregate_batch_results(list(worker_results)).model_dump(), "batch_count": len(worker_results)}

    def _batch_ranges(self, total: int, size: int, step: int, max_batches: int | None) -> list[tuple[int, int]]:
        """Return the ranges; `step` has no effect on them. Raises `ValueError` for a size below 1."""
        return ranges(total, batch_size_within(total, size, max_batches) if total else 1)

    def _batch_succeeded(self, processed: int, failed: int, skipped: int) -> int:
        """Return all processed items, even if some failed."""
        return processed

    def _succeeded(self, result: dict[str, Any], metadata: dict[str, Any] | None, **marks: bool) -> StepHandlerResult:
        return self.success(result, metadata={**(metadata or {}), **marks})


def _counts(outcome: BatchWorkerOutcome) -> dict[str, Any]:
    """Return the counts of a worker, with `results` and `errors` only if not empty."""
    counts = outcome.model_dump()
    return {key: value for key, value in counts.items() if value or key not in ("results", "errors")}
