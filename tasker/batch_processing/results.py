"""Results of batch steps, in the form that the engine and dependent steps read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tasker.contracts.expansion.outcome_forms import BATCH_KEY
from tasker.errors import ValidationError
from tasker.types import BatchWorkerOutcome, StepHandlerResult
from tasker.types.batch_outcome import no_batches, wire_outcome

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
