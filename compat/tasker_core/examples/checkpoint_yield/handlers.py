"""Three handlers of the example; the items are numbers, and an item's value is its number plus one."""

from __future__ import annotations

from typing import Any

from tasker_core.batch_processing import Batchable
from tasker_core.step_handler import StepHandler
from tasker_core.types import ErrorType, StepContext, StepHandlerResult

PLACE = "tasker_core.examples.checkpoint_yield"


class CheckpointYieldAnalyzerHandler(StepHandler, Batchable):
    """Analyzer that creates one batch of the task's `total_items` (100)."""

    handler_name = f"{PLACE}.CheckpointYieldAnalyzerHandler"

    def call(self, context: StepContext) -> StepHandlerResult:
        total = context.get_input_or("total_items", 100)
        if total <= 0:
            return self.no_batches_outcome("no_items_to_process")
        return self.batch_analyzer_success(
            cursor_configs=self.create_cursor_ranges(total, total),
            total_items=total,
            worker_template_name=context.step_config.get("worker_template_name", "checkpoint_yield_batch"),
            batch_metadata={"test_type": "checkpoint_yield", "items_per_batch": total},
        )


class CheckpointYieldWorkerHandler(StepHandler, Batchable):
    """Worker that saves its progress after every `items_per_checkpoint` (25) items.

    With `fail_after_items` it fails there, in the attempt `fail_on_attempt` (1), permanently if `permanent_failure`.
    """

    handler_name = f"{PLACE}.CheckpointYieldWorkerHandler"

    def call(self, context: StepContext) -> StepHandlerResult:
        """Process the batch, from the last checkpoint on."""
        if (placeholder := self.handle_no_op_worker(context)) is not None:
            return placeholder
        inputs = self.get_batch_worker_inputs(context)
        if inputs is None:
            return self.failure("this step has no batch inputs", ErrorType.VALIDATION_ERROR.value, retryable=False)
        first = inputs.cursor.start_cursor if context.checkpoint is None else context.checkpoint_cursor
        totals = context.accumulated_results or {"running_total": 0, "item_ids": []}
        return self._work(context, first, inputs.cursor.end_cursor, totals)

    def _work(self, context: StepContext, first: Any, end: Any, totals: dict[str, Any]) -> StepHandlerResult:
        size = context.get_input_or("items_per_checkpoint", context.step_config.get("items_per_checkpoint", 25))
        done = context.checkpoint_items_processed
        for cursor in range(first, end):
            if _fails_here(context, done):
                return self._injected(done, cursor, bool(context.get_input("permanent_failure")))
            totals["running_total"] += cursor + 1
            totals["item_ids"].append(f"item_{cursor:04d}")
            done += 1
            if cursor + 1 - first >= size and cursor + 1 < end:
                return self.checkpoint_yield(cursor + 1, done, totals)
        metadata = {**totals, "final_cursor": end, "checkpoints_used": done // size}
        return self.batch_worker_success(items_processed=done, items_succeeded=done, batch_metadata=metadata)

    def _injected(self, done: int, cursor: int, permanent: bool) -> StepHandlerResult:
        kind = ErrorType.PERMANENT_ERROR if permanent else ErrorType.RETRYABLE_ERROR
        metadata = {
            "items_processed": done,
            "cursor_at_failure": cursor,
            "failure_type": "permanent" if permanent else "transient",
        }
        return self.failure(f"failed on purpose after {done} items", kind.value, not permanent, metadata)


class CheckpointYieldAggregatorHandler(StepHandler, Batchable):
    """Aggregator of the workers' results."""

    handler_name = f"{PLACE}.CheckpointYieldAggregatorHandler"

    def call(self, context: StepContext) -> StepHandlerResult:
        scenario = self.detect_aggregation_scenario(
            context.dependency_results, "analyze_items", "checkpoint_yield_batch_"
        )
        zero = {"total_processed": 0, "running_total": 0, "test_passed": True}
        return self.aggregate_batch_worker_results(scenario, zero, _totals)


def _fails_here(context: StepContext, done: int) -> bool:
    limit = context.get_input("fail_after_items")
    is_attempt = context.retry_count + 1 == context.get_input_or("fail_on_attempt", 1)
    return limit is not None and done >= limit and is_attempt


def _totals(results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    metadata = [result.get("batch_metadata", {}) for result in results.values()]
    return {
        "total_processed": sum(result.get("items_processed", 0) for result in results.values()),
        "running_total": sum(data.get("running_total", 0) for data in metadata),
        "item_count": sum(len(data.get("item_ids", [])) for data in metadata),
        "checkpoints_used": sum(data.get("checkpoints_used", 0) for data in metadata),
        "test_passed": True,
    }
