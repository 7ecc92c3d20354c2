"""Outcome of a batchable step: the batches into which its work is split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import Field, model_validator

from tasker.contracts.expansion.outcome_forms import BatchType
from tasker.errors import ValidationError
from tasker.types.cursor import CursorConfig, RustCursorConfig, wire_cursor
from tasker.types.model import Model


class NoBatchesOutcome(Model):
    """Outcome without batches: no worker processes any item."""

    type: str = BatchType.NO_BATCHES.value

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome in wire form."""
        return {"type": self.type}


class CreateBatchesOutcome(Model):
    """Outcome with one worker per cursor. Raises `ValidationError` if the numbers are inconsistent."""

    type: str = BatchType.CREATE_BATCHES.value
    worker_template_name: str
    worker_count: int
    cursor_configs: list[RustCursorConfig]
    total_items: int

    @model_validator(mode="after")
    def _check(self) -> CreateBatchesOutcome:
        for complaint in _complaints(self):
            raise ValidationError(complaint)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome in wire form."""
        return self.model_dump(mode="json")


def _complaints(outcome: CreateBatchesOutcome) -> list[str]:
    ids = [config.batch_id for config in outcome.cursor_configs]
    checks = {
        "worker_template_name is empty": not outcome.worker_template_name,
        "cursor_configs is empty; return no batches instead": not ids,
        f"worker_count is {outcome.worker_count} but there are {len(ids)} cursor_configs": outcome.worker_count
        != len(ids),
        f"batch_id values repeat: {ids}": len(set(ids)) != len(ids),
        f"total_items is {outcome.total_items}, expected 0 or more": outcome.total_items < 0,
    }
    return [text for text, broken in checks.items() if broken]


BatchProcessingOutcome = NoBatchesOutcome | CreateBatchesOutcome


def no_batches() -> NoBatchesOutcome:
    """Return the outcome without batches."""
    return NoBatchesOutcome()


def create_batches(
    worker_template_name: str, worker_count: int, cursor_configs: list[RustCursorConfig], total_items: int
) -> CreateBatchesOutcome:
    """Return the outcome that creates `worker_count` workers of the template's step `worker_template_name`."""
    return CreateBatchesOutcome(
        worker_template_name=worker_template_name,
        worker_count=worker_count,
        cursor_configs=cursor_configs,
        total_items=total_items,
    )


def wire_outcome(worker_template_name: str, cursor_configs: Sequence[Any], total_items: int | None) -> dict[str, Any]:
    """Return the wire form of an analysis: `no_batches` without cursors, else `create_batches`.

    `cursor_configs` accepts every form of a cursor; without `total_items` the batch sizes are added up.
    """
    cursors = [wire_cursor(config, index) for index, config in enumerate(cursor_configs)]
    if not cursors:
        return no_batches().to_dict()
    total = sum(cursor["batch_size"] for cursor in cursors) if total_items is None else total_items
    checked = create_batches(
        worker_template_name, len(cursors), [RustCursorConfig.model_validate(cursor) for cursor in cursors], total
    )
    return checked.to_dict() | {"cursor_configs": cursors}


class BatchAnalyzerOutcome(Model):
    """Analysis as handlers build it: the ranges, the number of items, and data for every worker."""

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
    ) -> Self:
        """Return an analysis with one batch per (start, end), end exclusive."""
        cursors = [{"start_cursor": start, "end_cursor": end, "step_size": step_size} for start, end in ranges]
        return cls._of(cursors, total_items, batch_metadata)

    def to_dict(self, worker_template_name: str = "batch_worker") -> dict[str, Any]:
        """Return the analysis in wire form."""
        return wire_outcome(worker_template_name, self.cursor_configs, self.total_items)

    @classmethod
    def parse(cls, value: Any) -> Self:
        """Return the analysis from the wire form or from this class's own form.

        Raises `ValidationError` for any other value.
        """
        found: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
        kind, cursors = found.get("type"), found.get("cursor_configs")
        if kind == BatchType.NO_BATCHES:
            return cls(total_items=0)
        if kind not in (None, BatchType.CREATE_BATCHES) or not isinstance(cursors, list):
            raise ValidationError(
                f"not a batch outcome: {value!r:.100}", hint='expected type "no_batches" or "create_batches"'
            )
        configs = [wire_cursor(item, i) for i, item in enumerate(cursors)]
        return cls._of(configs, found.get("total_items"), found.get("batch_metadata"))

    @classmethod
    def _of(cls, cursors: list[dict[str, Any]], total_items: Any, batch_metadata: Any) -> Self:
        found = {"cursor_configs": cursors, "total_items": total_items, "batch_metadata": batch_metadata or {}}
        return cls.model_validate(found)
