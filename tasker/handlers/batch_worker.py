"""Input and outcome of a batch worker."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NoReturn, Self

from pydantic import ConfigDict, Field

from tasker.errors import ValidationError
from tasker.handlers.batch_outcomes import CursorConfig, RustCursorConfig
from tasker.handlers.copies import CopyOnRead
from tasker.handlers.readable import yes_or_no
from tasker.handlers.results import Model

if TYPE_CHECKING:
    from tasker.handlers.context import StepContext


class FailureStrategy(StrEnum):
    """Recommended reaction to an item that fails; the handler implements it."""

    CONTINUE_ON_FAILURE = "continue_on_failure"
    FAIL_FAST = "fail_fast"
    ISOLATE = "isolate"

    @classmethod
    def _missing_(cls, value: object) -> FailureStrategy | None:
        return cls.ISOLATE if value == "isolate_failed" else None


class BatchMetadata(Model):
    """Recommendations of the template for its batch workers; additional keys are kept."""

    model_config = ConfigDict(extra="allow")

    cursor_field: str
    failure_strategy: FailureStrategy


class RustBatchWorkerInputs(Model):
    """Inputs of a batch worker's step."""

    cursor: RustCursorConfig
    batch_metadata: BatchMetadata
    is_no_op: bool

    @classmethod
    def parse(cls, inputs: Mapping[str, Any]) -> RustBatchWorkerInputs | None:
        """Return the inputs of a batch worker; None if `inputs` has no cursor, which means another kind of step.

        Raises `ValidationError` if there is a cursor but the inputs are invalid.
        """
        if not inputs.get("cursor"):
            return None
        metadata = {"cursor_field": "id", "failure_strategy": "fail_fast", **(inputs.get("batch_metadata") or {})}
        try:
            return cls(
                cursor=RustCursorConfig.model_validate(inputs["cursor"]),
                batch_metadata=BatchMetadata.model_validate(metadata),
                is_no_op=bool(inputs.get("is_no_op", False)),
            )
        except ValueError as error:
            raise ValidationError(f"the inputs of this batch worker cannot be read: {error}") from None


class BatchWorkerContext(Model):
    """One batch: its cursors, its index among the batches (`total_batches` is 0 if unknown), the last checkpoint."""

    batch_id: str
    cursor_config: CursorConfig
    batch_index: int
    total_batches: int
    batch_metadata: dict[str, Any] = Field(default_factory=dict)
    checkpoint: dict[str, Any] = Field(default_factory=dict)
    batch_size: int = 0
    is_no_op: bool = False

    @property
    def start_cursor(self) -> Any:
        """First position, inclusive."""
        return self.cursor_config.start_cursor

    @property
    def end_cursor(self) -> Any:
        """Last position, exclusive."""
        return self.cursor_config.end_cursor

    @property
    def step_size(self) -> int:
        """Distance between two items of an integer range."""
        return self.cursor_config.step_size

    def start_position(self) -> Any:
        """Return the first position; see `start_cursor`."""
        return self.start_cursor

    def end_position(self) -> Any:
        """Return the last position; see `end_cursor`."""
        return self.end_cursor

    @property
    def checkpoint_interval(self) -> int | None:
        """Recommended number of items between checkpoints; None if the template sets none."""
        return self.batch_metadata.get("checkpoint_interval")

    @property
    def checkpoint_cursor(self) -> Any:
        """Position of the last checkpoint; None without one."""
        return self.checkpoint.get("cursor")

    @property
    def accumulated_results(self) -> dict[str, Any] | None:
        """Results stored with the last checkpoint; None without any."""
        return self.checkpoint.get("accumulated_results")

    @yes_or_no
    def has_checkpoint(self) -> bool:
        """True if an earlier run of this step stored a checkpoint."""
        return bool(self.checkpoint)

    @property
    def checkpoint_items_processed(self) -> int:
        """Number of items processed at the last checkpoint; 0 without one."""
        return self.checkpoint.get("items_processed") or 0

    def checkpoint_yield(
        self, cursor: Any, items_processed: int, accumulated_results: dict[str, Any] | None = None
    ) -> NoReturn:
        """Store a checkpoint and run this step again from there; never returns."""
        from tasker.handlers.step_handler import checkpoint_yield

        checkpoint_yield(cursor, items_processed, accumulated_results)

    @classmethod
    def from_step_context(cls, step_context: StepContext) -> BatchWorkerContext | None:
        """Return the batch of a step; None if the step is not a batch worker.

        Raises `ValidationError` if its inputs are invalid.
        """
        raw = step_context.step_inputs
        inputs = RustBatchWorkerInputs.parse(raw)
        if inputs is None:
            return None
        batch = inputs.cursor.batch_id
        return cls(
            batch_id=batch,
            cursor_config=CursorConfig.model_validate(raw["cursor"]),
            batch_index=max(int(batch) - 1, 0) if batch.isdigit() else 0,
            total_batches=raw.get("total_batches") or _count_batches(step_context.read_singly("dependency_results")),
            batch_metadata=inputs.batch_metadata.model_dump(mode="json"),
            checkpoint=step_context.checkpoint or {},
            batch_size=inputs.cursor.batch_size,
            is_no_op=inputs.is_no_op,
        )


def _count_batches(above: Mapping[str, Any]) -> int:
    """Return the number of batches from the analyzer's result.

    The result is read without copying: otherwise each of n workers would copy n cursors.
    """
    for name in above:
        result = above.original(name) if isinstance(above, CopyOnRead) else above[name]
        outcome = result.get("batch_processing_outcome") if isinstance(result, Mapping) else None
        if isinstance(outcome, Mapping) and "worker_count" in outcome:
            return int(outcome["worker_count"])
    return 0


class BatchWorkerOutcome(Model):
    """Counts, results and errors of one processed batch."""

    items_processed: int = 0
    items_succeeded: int = 0
    items_failed: int = 0
    items_skipped: int = 0
    results: list[dict[str, Any]] = Field(default_factory=list)
    errors: list[dict[str, Any]] = Field(default_factory=list)
    last_cursor: Any = None
    batch_metadata: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def counted(
        cls,
        counts: tuple[int, int, int, int],
        results: list[dict[str, Any]] | None,
        errors: list[dict[str, Any]] | None,
        last_cursor: Any,
        batch_metadata: dict[str, Any] | None,
    ) -> Self:
        """Return the outcome from the numbers of items processed, succeeded, failed and skipped, in this order."""
        processed, succeeded, failed, skipped = counts
        return cls(
            items_processed=processed,
            items_succeeded=succeeded,
            items_failed=failed,
            items_skipped=skipped,
            results=results or [],
            errors=errors or [],
            last_cursor=last_cursor,
            batch_metadata=batch_metadata or {},
        )
