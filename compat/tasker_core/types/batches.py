"""Types of batches: the split of work, the input of a batch worker, the aggregate over the workers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from pydantic import BaseModel, Field

from tasker.errors import ValidationError
from tasker.handlers.batch_outcomes import BatchAggregationResult, NoBatchesOutcome, RustCursorConfig
from tasker.handlers.batch_outcomes import BatchAnalyzerOutcome as EngineAnalysis
from tasker.handlers.batch_outcomes import aggregate_batch_results as engine_totals
from tasker.handlers.batch_worker import BatchMetadata as EngineMetadata
from tasker.handlers.batch_worker import BatchWorkerContext as EngineWorkerContext
from tasker.handlers.batch_worker import RustBatchWorkerInputs as EngineInputs
from tasker.handlers.context import StepContext as EngineContext
from tasker.handlers.outcome_forms import BATCH_KEY
from tasker.handlers.readable import yes_or_no
from tasker_core.models import DependencyResultsWrapper

COUNTS = ("items_processed", "items_succeeded", "items_failed", "items_skipped")


class FailureStrategy(str, Enum):  # noqa: UP042 (its text is published as `FailureStrategy.ISOLATE`)
    """Strategy of a worker for failed items; advice for the handler."""

    CONTINUE_ON_FAILURE = "continue_on_failure"
    FAIL_FAST = "fail_fast"
    ISOLATE = "isolate"


class BatchMetadata(EngineMetadata):
    """The template's advice to its workers; further keys are kept."""

    failure_strategy: FailureStrategy  # type: ignore[assignment]


class RustBatchWorkerInputs(EngineInputs):
    """Inputs of a worker instance."""

    batch_metadata: BatchMetadata

    @classmethod
    def parse(cls, inputs: Any) -> RustBatchWorkerInputs | None:
        """Return the inputs of a batch worker, or None for another kind of step or for invalid inputs."""
        if not isinstance(inputs, Mapping):
            return None
        try:
            parsed = EngineInputs.parse(inputs)
        except ValidationError:
            return None
        return None if parsed is None else cls.model_validate(parsed.model_dump(mode="json"))


class CursorConfig(BaseModel):
    """Range of a batch: start inclusive, end exclusive."""

    start_cursor: Any
    end_cursor: Any
    step_size: int = 1
    metadata: dict[str, Any] = Field(default_factory=dict)


class BatchAnalyzerOutcome(EngineAnalysis):
    """Result of an analysis: the ranges, the number of items, and data for every worker."""

    cursor_configs: list[CursorConfig] = Field(default_factory=list)  # type: ignore[assignment]


class BatchWorkerContext(EngineWorkerContext):
    """Batch with the last checkpoint of its worker."""

    cursor_config: CursorConfig  # type: ignore[assignment]

    @yes_or_no
    def has_checkpoint(self) -> bool:
        """Return True if an earlier run of this step saved a cursor."""
        return self.checkpoint_cursor is not None

    @classmethod
    def from_step_context(cls, step_context: EngineContext) -> BatchWorkerContext | None:
        """Return the batch of a step; without inputs, the `batch_context` of its configuration or of the task.

        Returns None if there is neither. A cursor without `step_size` steps over the whole batch. A stand-in for a
        context, as in tests, needs only the attributes that are read.
        """
        inputs: Any = step_context.step_inputs
        if isinstance(inputs, Mapping) and "cursor" in inputs:
            return cls._from_inputs(inputs, step_context)
        data = step_context.step_config.get("batch_context") or step_context.input_data.get("batch_context")
        if data is None:
            return None
        return cls(
            batch_id=data.get("batch_id", ""),
            cursor_config=_cursor(data.get("cursor_config", {}), 1),
            batch_index=data.get("batch_index", 0),
            total_batches=data.get("total_batches", 1),
            batch_metadata=data.get("batch_metadata", {}),
            checkpoint=_checkpoint(step_context),
        )

    @classmethod
    def _from_inputs(cls, inputs: Mapping[str, Any], step_context: EngineContext) -> BatchWorkerContext:
        cursor: Mapping[str, Any] = inputs["cursor"] or {}
        number, size = str(cursor.get("batch_id", "")), cursor.get("batch_size", 0)
        return cls(
            batch_id=number,
            cursor_config=_cursor(cursor, size or 1),
            batch_index=max(int(number) - 1, 0) if number.isdigit() else 0,
            total_batches=_batches(step_context.dependency_results),
            batch_metadata=inputs.get("batch_metadata") or {},
            checkpoint=_checkpoint(step_context),
            batch_size=size,
            is_no_op=bool(inputs.get("is_no_op")),
        )


def _cursor(data: Mapping[str, Any], step_size: int) -> CursorConfig:
    return CursorConfig(
        start_cursor=data.get("start_cursor", 0),
        end_cursor=data.get("end_cursor", 0),
        step_size=data.get("step_size") or step_size,
        metadata=data.get("metadata", {}),
    )


def _checkpoint(step_context: Any) -> dict[str, Any]:
    if isinstance(step_context, EngineContext):
        return step_context.checkpoint or {}
    data = getattr(step_context.event, "task_sequence_step", None)  # a stand-in
    step = data.get("workflow_step") if isinstance(data, Mapping) else None
    return (step.get("checkpoint") if isinstance(step, Mapping) else None) or {}


def _batches(results: Any) -> int:
    """Return the number of batches of the analysis above, or 1 if it is not known."""
    known = DependencyResultsWrapper.from_dict(results if isinstance(results, dict) else None)
    contents = [value for value in map(known.get_results, known) if isinstance(value, dict)]
    return next((value["worker_count"] for value in contents if BATCH_KEY in value and "worker_count" in value), 1)


class CreateBatchesOutcome(BaseModel):
    """Outcome that creates one worker for each cursor."""

    type: str = "create_batches"
    worker_template_name: str
    worker_count: int
    cursor_configs: list[RustCursorConfig]
    total_items: int


BatchProcessingOutcome = NoBatchesOutcome | CreateBatchesOutcome


def create_batches(
    worker_template_name: str, worker_count: int, cursor_configs: list[RustCursorConfig], total_items: int
) -> CreateBatchesOutcome:
    """Create the outcome with `worker_count` workers. Raises `ValueError` for another number of cursors."""
    if len(cursor_configs) != worker_count:
        raise ValueError(f"worker_count is {worker_count}, expected one for each of {len(cursor_configs)} cursors")
    return CreateBatchesOutcome(
        worker_template_name=worker_template_name,
        worker_count=worker_count,
        cursor_configs=cursor_configs,
        total_items=total_items,
    )


def aggregate_batch_results(
    worker_results: list[dict[str, Any] | None], max_errors: int = 100
) -> BatchAggregationResult:
    """Add up the results of workers. A missing count is 0."""
    counted = [
        None if worker_result is None else {**dict.fromkeys(COUNTS, 0), **worker_result}
        for worker_result in worker_results
    ]
    return engine_totals(counted, max_errors)
