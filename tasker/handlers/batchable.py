"""Base classes and mixins of handlers that split work into batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, NoReturn, TypeVar

from pydantic import BaseModel

from tasker.handlers.batch_arithmetic import (
    BatchAggregationScenario,
    aggregation_result,
    analysis_result,
    no_batches_result,
    no_op_result,
    optimal_batch_size,
    ranges_by_size,
    ranges_by_workers,
    worker_result,
)
from tasker.handlers.batch_outcomes import BatchAnalyzerOutcome, CursorConfig, aggregate_batch_results
from tasker.handlers.batch_worker import BatchWorkerContext, BatchWorkerOutcome, RustBatchWorkerInputs
from tasker.handlers.context import StepContext
from tasker.handlers.outcome_forms import batch_id
from tasker.handlers.results import StepHandlerResult
from tasker.handlers.step_handler import StepHandler, checkpoint_yield

__all__ = ["BatchAggregationScenario", "BatchWorkerConfig", "Batchable", "BatchableHandler", "BatchableMixin"]

Cursor = TypeVar("Cursor", bound=BaseModel)
Analysis = TypeVar("Analysis", bound=BatchAnalyzerOutcome)


class BatchForms(Generic[Cursor, Analysis]):
    """Builds cursors and analyses of the classes that a subclass names.

    Ranges are 0-indexed, start inclusive, end exclusive.
    """

    cursor_class: type[Cursor]
    analysis_class: type[Analysis]

    def create_cursor_config(
        self, start: int, end: int, step_size: int = 1, metadata: dict[str, Any] | None = None
    ) -> Cursor:
        """Return one range."""
        fields = {"start_cursor": start, "end_cursor": end, "step_size": step_size, "metadata": metadata or {}}
        return self.cursor_class.model_validate(fields)

    def create_cursor_ranges(
        self, total_items: int, batch_size: int, step_size: int = 1, max_batches: int | None = None
    ) -> list[Cursor]:
        """Return ranges of about `batch_size`; `max_batches` makes them larger and never drops items."""
        ranges = self._batch_ranges(total_items, batch_size, step_size, max_batches)
        return [self.create_cursor_config(start, end, step_size) for start, end in ranges]

    def create_batch_outcome(
        self, total_items: int, batch_size: int, step_size: int = 1, batch_metadata: dict[str, Any] | None = None
    ) -> Analysis:
        """Return the analysis for `total_items` in batches of `batch_size`."""
        cursors = self.create_cursor_ranges(total_items, batch_size, step_size)
        fields = {"cursor_configs": cursors, "total_items": total_items, "batch_metadata": batch_metadata or {}}
        return self.analysis_class.model_validate(fields)

    def create_batch_outcome_from_ranges(
        self,
        ranges: list[tuple[int, int]],
        step_size: int = 1,
        total_items: int | None = None,
        batch_metadata: dict[str, Any] | None = None,
    ) -> Analysis:
        """Return the analysis for custom ranges."""
        return self.analysis_class.from_ranges(ranges, step_size, total_items, batch_metadata)

    def create_worker_outcome(
        self,
        items_processed: int,
        items_succeeded: int = 0,
        items_failed: int = 0,
        items_skipped: int = 0,
        results: list[dict[str, Any]] | None = None,
        errors: list[dict[str, Any]] | None = None,
        last_cursor: int | None = None,
        batch_metadata: dict[str, Any] | None = None,
    ) -> BatchWorkerOutcome:
        """Return the counts of a batch. Without any of the other counts, every processed item counts as succeeded."""
        succeeded = items_succeeded or self._batch_succeeded(items_processed, items_failed, items_skipped)
        counts = (items_processed, succeeded, items_failed, items_skipped)
        return BatchWorkerOutcome.counted(counts, results, errors, last_cursor, batch_metadata)

    @abstractmethod
    def _batch_ranges(self, total: int, size: int, step: int, max_batches: int | None) -> list[tuple[int, int]]:
        """Return start and end of each batch."""

    def _batch_succeeded(self, processed: int, failed: int, skipped: int) -> int:
        """Return the number of succeeded items if none was given: 0 if some failed or were skipped, else all."""
        return 0 if failed or skipped else processed


class BatchWorkerConfig:
    """One worker's share of the items: a range with its index among the workers, from 0."""

    def __init__(
        self, batch_id: str, cursor_start: int, cursor_end: int, row_count: int, worker_index: int, total_workers: int
    ) -> None:
        self.batch_id = batch_id
        self.cursor_start = cursor_start
        self.cursor_end = cursor_end
        self.row_count = row_count
        self.worker_index = worker_index
        self.total_workers = total_workers

    def to_dict(self) -> dict[str, Any]:
        """Return the share as a cursor in wire form."""
        return {
            "batch_id": self.batch_id,
            "start_cursor": self.cursor_start,
            "end_cursor": self.cursor_end,
            "batch_size": self.row_count,
        }


class Batchable(BatchForms[CursorConfig, BatchAnalyzerOutcome]):
    """Mixin for a step handler. Ranges are 0-indexed, start inclusive, end exclusive."""

    cursor_class = CursorConfig
    analysis_class = BatchAnalyzerOutcome

    def create_cursor_configs(self, total_items: int, worker_count: int) -> list[BatchWorkerConfig]:
        """Return at most `worker_count` equal shares; fewer if there are not enough items for all."""
        ranges = ranges_by_workers(total_items, worker_count)
        return [
            BatchWorkerConfig(batch_id(index), start, end, end - start, index, len(ranges))
            for index, (start, end) in enumerate(ranges)
        ]

    def generate_cursor_configs(
        self, total_items: int, worker_count: int, fn: Callable[[int, int, int, int], dict[str, Any]] | None = None
    ) -> list[dict[str, Any]]:
        """Return shares in wire form; `fn(index, start, end, items)` may build each one, with cursors of any kind."""
        shares = self.create_cursor_configs(total_items, worker_count)
        if fn is None:
            return [share.to_dict() for share in shares]
        return [
            {"batch_id": s.batch_id, "batch_size": s.row_count}
            | fn(s.worker_index, s.cursor_start, s.cursor_end, s.row_count)
            for s in shares
        ]

    def calculate_optimal_batch_size(self, total_items: int, item_processing_time_ms: float) -> int:
        """Return the number of items per batch for batches of about 7.5 minutes; fewer items make a single batch."""
        return optimal_batch_size(item_processing_time_ms)

    def batch_analyzer_success(
        self,
        outcome: BatchAnalyzerOutcome | None = None,
        metadata: dict[str, Any] | None = None,
        worker_template_name: str = "batch_worker",
        cursor_configs: Sequence[Any] | None = None,
        total_items: int | None = None,
        batch_metadata: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Return a success that creates one worker per cursor; no cursors means no batches.

        Pass an `outcome`, or `cursor_configs` in any accepted form. Workers read `batch_metadata` from this step's
        result. Raises `ValidationError` for invalid cursors.
        """
        analysis = outcome or BatchAnalyzerOutcome()
        return analysis_result(
            worker_template_name,
            analysis.cursor_configs if cursor_configs is None else cursor_configs,
            analysis.total_items if total_items is None else total_items,
            {"batch_metadata": {**analysis.batch_metadata, **(batch_metadata or {})}},
            metadata,
        )

    def create_batches_success(
        self,
        worker_template_name: str,
        worker_count: int,
        cursor_configs: Sequence[Any],
        total_items: int,
        additional_data: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Return a success as `batch_analyzer_success` does, with `additional_data` at the top level of the result.

        `worker_count` must equal the number of cursors.
        """
        return analysis_result(
            worker_template_name, cursor_configs, total_items, additional_data or {}, metadata, worker_count
        )

    def no_batches_outcome(self, reason: str, metadata: dict[str, Any] | None = None) -> StepHandlerResult:
        """Return a success without batches.

        No worker processes any item: process a small amount here, or it is lost.
        """
        return no_batches_result({"reason": reason}, metadata)

    def no_batches_success(self, reason: str, **extra: Any) -> StepHandlerResult:
        """Return a success without batches, with additional fields in the result."""
        return no_batches_result({"reason": reason, **extra}, None)

    def get_batch_worker_inputs(self, context: StepContext) -> RustBatchWorkerInputs | None:
        """Return the inputs of this worker; None if the step is not a batch worker."""
        return RustBatchWorkerInputs.parse(context.step_inputs)

    def get_batch_context(self, context: StepContext) -> BatchWorkerContext | None:
        """Return this worker's batch with its checkpoint; None if the step is not a batch worker."""
        return BatchWorkerContext.from_step_context(context)

    def create_batch_context(
        self,
        cursor_config: CursorConfig,
        batch_index: int,
        total_batches: int,
        batch_metadata: dict[str, Any] | None = None,
    ) -> BatchWorkerContext:
        """Return a batch for tests of a worker."""
        wire = cursor_config.to_dict(batch_index)
        return BatchWorkerContext(
            batch_id=wire["batch_id"],
            cursor_config=cursor_config,
            batch_index=batch_index,
            total_batches=total_batches,
            batch_metadata=batch_metadata or {},
            batch_size=wire["batch_size"],
        )

    def handle_no_op_worker(self, context: StepContext | BatchWorkerContext | None) -> StepHandlerResult | None:
        """Return the result of the placeholder worker that runs if there are no batches; None for a real worker."""
        batch = self.get_batch_context(context) if isinstance(context, StepContext) else context
        return no_op_result(batch.batch_id) if batch is not None and batch.is_no_op else None

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
        last_cursor: Any = None,
        batch_metadata: dict[str, Any] | None = None,
        *,
        processed_count: int | None = None,
        result_data: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Return the success of a batch.

        `processed_count` is an alias of `items_processed`; `result_data` is merged into the result. Without
        `items_succeeded`, every processed item that did not fail counts as succeeded.
        """
        processed = next((n for n in (items_processed, processed_count) if n is not None), 0)
        succeeded = processed - items_failed if items_succeeded is None else items_succeeded
        counts = (processed, succeeded, items_failed, items_skipped)
        counted = BatchWorkerOutcome.counted(counts, results, errors, last_cursor, batch_metadata)
        return worker_result(outcome or counted, result_data, metadata)

    def batch_worker_complete(
        self, processed_count: int, result_data: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None
    ) -> StepHandlerResult:
        """Return the success of a batch, with custom data in the result."""
        return self.batch_worker_success(processed_count=processed_count, result_data=result_data, metadata=metadata)

    def batch_worker_partial_failure(
        self, outcome: BatchWorkerOutcome, message: str | None = None, metadata: dict[str, Any] | None = None
    ) -> StepHandlerResult:
        """Return the success of a batch with failed items, marked by `partial_failure`; for `continue_on_failure`."""
        text = message or f"{outcome.items_failed} of {outcome.items_processed} items failed"
        return worker_result(outcome, {"partial_failure": True, "message": text}, metadata)

    def checkpoint_yield(
        self,
        cursor: int | str | dict[str, Any] | None,
        items_processed: int,
        accumulated_results: dict[str, Any] | None = None,
    ) -> NoReturn:
        """Store a checkpoint and run this step again from there.

        Execution stops here, with or without `return` before the call; `except Exception` does not catch it.
        """
        checkpoint_yield(cursor, items_processed, accumulated_results)

    def detect_aggregation_scenario(
        self, dependency_results: dict[str, Any], batchable_step_name: str, batch_worker_prefix: str
    ) -> BatchAggregationScenario:
        """Return the input of a convergence step; see `BatchAggregationScenario.detect`."""
        return BatchAggregationScenario.detect(dependency_results, batchable_step_name, batch_worker_prefix)

    def no_batches_aggregation_result(self, zero_metrics: dict[str, Any] | None = None) -> StepHandlerResult:
        """Return the convergence result if nothing was processed: `zero_metrics` and `worker_count` 0."""
        return aggregation_result(zero_metrics or {}, 0)

    def aggregate_batch_worker_results(
        self,
        scenario: BatchAggregationScenario,
        zero_metrics: dict[str, Any] | None = None,
        aggregation_fn: Callable[[dict[str, dict[str, Any]]], dict[str, Any]] | None = None,
    ) -> StepHandlerResult:
        """Return the aggregated result of a convergence step.

        It is `aggregation_fn` of the workers' results by step name, or the standard totals; `zero_metrics` without
        batches.
        """
        if scenario.no_batches():
            return self.no_batches_aggregation_result(zero_metrics)
        if aggregation_fn is None:
            return aggregation_result(
                self.aggregate_worker_results(list(scenario.batch_results.values())), scenario.worker_count
            )
        return aggregation_result(aggregation_fn(scenario.batch_results), scenario.worker_count)

    @staticmethod
    def aggregate_worker_results(worker_results: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the standard totals over the workers' results."""
        return aggregate_batch_results(list(worker_results)).model_dump()

    def _batch_ranges(self, total: int, size: int, step: int, max_batches: int | None) -> list[tuple[int, int]]:
        return ranges_by_size(total, size, step, max_batches)


BatchableMixin = Batchable


class BatchableHandler(Batchable, StepHandler):
    """`StepHandler` with `Batchable`."""
