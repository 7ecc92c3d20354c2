"""A batch worker that saves a checkpoint after each chunk. The value of row n is n, so the totals can be checked."""

from __future__ import annotations

from tasker.batch_processing import BatchableHandler
from tasker.errors import NetworkError, ValidationError, is_retryable
from tasker.types import StepContext, StepHandlerResult


class PlanImportHandler(BatchableHandler):
    """As many batches as the template or the input says; none for no rows."""

    handler_name = "checkpoint_yield.plan_import"

    def call(self, context: StepContext) -> StepHandlerResult:
        rows, workers = context.get_input("rows"), context.get_input_or("workers", context.get_config("workers"))
        return self.batch_analyzer_success(
            cursor_configs=self.create_cursor_ranges(rows, batch_size=max(-(-rows // workers), 1)),
            total_items=rows,
            worker_template_name="import_rows",
        )


class ImportRowsHandler(BatchableHandler):
    """Imports one chunk per run. Between runs the step stays in progress and no attempt is used."""

    handler_name = "checkpoint_yield.import_rows"

    def call(self, context: StepContext) -> StepHandlerResult:
        no_op = self.handle_no_op_worker(context)
        if no_op is not None:
            return no_op
        try:
            return self.import_next_chunk(context)
        except Exception as error:  # a checkpoint is no Exception and passes through here
            return self.failure(str(error), retryable=is_retryable(error), error_code="import_failed")

    def import_next_chunk(self, context: StepContext) -> StepHandlerResult:
        batch = self.get_batch_context(context)
        if batch is None:
            raise ValidationError("this handler runs as a batch worker")
        start = batch.checkpoint_cursor if batch.has_checkpoint() else batch.start_cursor
        saved = batch.accumulated_results or {"total": 0, "runs_started_at": []}
        stop = min(start + context.get_input_or("chunk_size", context.get_config("chunk_size")), batch.end_cursor)
        done = {
            "total": saved["total"] + self.import_chunk(start, stop, context),
            "runs_started_at": [*saved["runs_started_at"], start],
        }
        imported = stop - batch.start_cursor
        if stop < batch.end_cursor:
            self.checkpoint_yield(cursor=stop, items_processed=imported, accumulated_results=done)
        return self.success({"items_processed": imported, "batch_id": batch.batch_id, **done})

    def import_chunk(self, start: int, stop: int, context: StepContext) -> int:
        """Rows are written by number, so a chunk that is repeated after a failure changes nothing."""
        faults = context.get_input_or("simulate", {})
        if faults.get("fails_once_at") == start and not context.is_retry():
            raise NetworkError(f"the connection was lost at row {start}")
        if faults.get("poison_row", -1) in range(start, stop):
            raise ValidationError(f"row {faults['poison_row']} is not valid")
        return sum(range(start, stop))


class SummarizeImportHandler(BatchableHandler):
    """Adds up the batches; without any, everything is zero."""

    handler_name = "checkpoint_yield.summarize_import"

    def call(self, context: StepContext) -> StepHandlerResult:
        scenario = self.detect_aggregation_scenario(context.dependency_results, "plan_import", "import_rows_")
        batches = [] if scenario.is_no_batches else list(scenario.batch_results.values())
        return self.success(
            {
                "rows_imported": sum(batch["items_processed"] for batch in batches),
                "total": sum(batch["total"] for batch in batches),
                "workers": scenario.worker_count,
            }
        )
