"""Helpers for the three roles of a batch: the step that splits the work, the workers, the step that aggregates."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from tasker.handlers.batchable import BatchForms
from tasker.handlers.outcome_forms import BATCH_KEY
from tasker_core.answering import Answering
from tasker_core.batch_processing.aggregation import BatchAggregationScenario
from tasker_core.batch_processing.cursors import BatchWorkerConfig, batch_size_within, ranges, shares, wire_cursors
from tasker_core.types import (
    BatchAnalyzerOutcome,
    BatchWorkerContext,
    BatchWorkerOutcome,
    CursorConfig,
    RustBatchWorkerInputs,
    StepContext,
    StepHandlerResult,
    aggregate_batch_results,
    create_batches,
    no_batches,
)

__all__ = ["BatchAggregationScenario", "BatchWorkerConfig", "Batchable"]


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
