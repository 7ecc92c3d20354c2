"""How work is cut into batches, what a batch worker is given, and the sum over the workers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from pydantic import BaseModel, Field

from tasker.errors import ValidationError
from tasker.types import (
    BatchAggregationResult,
    NoBatchesOutcome,
    RustCursorConfig,
)
from tasker.types import BatchMetadata as EngineMetadata
from tasker.types import BatchWorkerContext as EngineWorkerContext
from tasker.types import RustBatchWorkerInputs as EngineInputs
from tasker.types import StepContext as EngineContext
from tasker.types import aggregate_batch_results as engine_totals

COUNTS = ("items_processed", "items_succeeded", "items_failed", "items_skipped")


class FailureStrategy(str, Enum):  # noqa: UP042 (its text is published as `FailureStrategy.ISOLATE`)
    """What a worker does about an item that fails; advice that the handler honours."""

    CONTINUE_ON_FAILURE = "continue_on_failure"
    FAIL_FAST = "fail_fast"
    ISOLATE = "isolate"


class BatchMetadata(EngineMetadata):
    """The template's advice to its workers; further keys are kept."""

    failure_strategy: FailureStrategy  # type: ignore[assignment]


class RustBatchWorkerInputs(EngineInputs):
    """The inputs of a worker instance."""

    batch_metadata: BatchMetadata

    @classmethod
    def parse(cls, inputs: Mapping[str, Any]) -> RustBatchWorkerInputs | None:
        """The inputs of a batch worker; None for another kind of step, and for inputs that cannot be read."""
        try:
            found = EngineInputs.parse(inputs)
        except ValidationError:
            return None
        return None if found is None else cls.model_validate(found.model_dump(mode="json"))


class CursorConfig(BaseModel):
    """Where a batch starts and ends: start inclusive, end exclusive."""

    start_cursor: Any
    end_cursor: Any
    step_size: int = 1
    metadata: dict[str, Any] = Field(default_factory=dict)


class BatchAnalyzerOutcome(BaseModel):
    """An analysis: the ranges, how many items there are, and data for every worker."""

    cursor_configs: list[CursorConfig] = Field(default_factory=list)
    total_items: int | None = None
    batch_metadata: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def from_ranges(
        cls,
        ranges: list[tuple[int, int]],
        step_size: int = 1,
        total_items: int | None = None,
        batch_metadata: dict[str, Any] | None = None,
    ) -> BatchAnalyzerOutcome:
        """One batch per (start, end)."""
        configs = [CursorConfig(start_cursor=start, end_cursor=end, step_size=step_size) for start, end in ranges]
        return cls(cursor_configs=configs, total_items=total_items, batch_metadata=batch_metadata or {})


class BatchWorkerContext(EngineWorkerContext):
    """One batch, with the last checkpoint of its worker."""

    cursor_config: CursorConfig  # type: ignore[assignment]

    def has_checkpoint(self) -> bool:
        """True when an earlier run of this step yielded at some cursor."""
        return self.checkpoint_cursor is not None

    @classmethod
    def from_step_context(cls, step_context: EngineContext) -> BatchWorkerContext | None:
        """The batch that a step works on; without inputs, the `batch_context` of its configuration or of the task.

        None when there is neither. A cursor that gives no `step_size` steps over the whole batch.
        """
        try:
            found = EngineWorkerContext.from_step_context(step_context)
        except ValidationError:
            found = None
        if found is None:
            return cls._from_settings(step_context)
        size = step_context.step_inputs["cursor"].get("step_size") or found.batch_size or 1
        return cls.model_validate({**found.model_dump(), "cursor_config": _cursor(found, size)})

    @classmethod
    def _from_settings(cls, step_context: EngineContext) -> BatchWorkerContext | None:
        data = step_context.step_config.get("batch_context") or step_context.input_data.get("batch_context")
        if data is None:
            return None
        return cls(
            batch_id=data.get("batch_id", ""),
            cursor_config=CursorConfig.model_validate(
                {"start_cursor": 0, "end_cursor": 0, **data.get("cursor_config", {})}
            ),
            batch_index=data.get("batch_index", 0),
            total_batches=data.get("total_batches", 1),
            batch_metadata=data.get("batch_metadata", {}),
            checkpoint=step_context.checkpoint or {},
        )


def _cursor(found: EngineWorkerContext, step_size: int) -> CursorConfig:
    known = found.cursor_config
    return CursorConfig(
        start_cursor=known.start_cursor, end_cursor=known.end_cursor, step_size=step_size, metadata=known.metadata
    )


class CreateBatchesOutcome(BaseModel):
    """One worker per cursor."""

    type: str = "create_batches"
    worker_template_name: str
    worker_count: int
    cursor_configs: list[RustCursorConfig]
    total_items: int


BatchProcessingOutcome = NoBatchesOutcome | CreateBatchesOutcome


def create_batches(
    worker_template_name: str, worker_count: int, cursor_configs: list[RustCursorConfig], total_items: int
) -> CreateBatchesOutcome:
    """The outcome that creates `worker_count` workers. Raises `ValueError` for another number of cursors."""
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
    """Add up the results of workers. A count that is not given is 0."""
    counted = [None if found is None else {**dict.fromkeys(COUNTS, 0), **found} for found in worker_results]
    return engine_totals(counted, max_errors)
