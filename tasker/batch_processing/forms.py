"""Values that the steps of a batch build before a result: cursors, an analysis, the counts of a worker."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from tasker.types import BatchAnalyzerOutcome, BatchWorkerOutcome

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
        found = {"start_cursor": start, "end_cursor": end, "step_size": step_size, "metadata": metadata or {}}
        return self.cursor_class.model_validate(found)

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
        found = {"cursor_configs": cursors, "total_items": total_items, "batch_metadata": batch_metadata or {}}
        return self.analysis_class.model_validate(found)

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
