"""Cursors of batches, outcomes of the step that splits, and results of the aggregation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from pydantic import BaseModel, Field, model_validator
from pydantic import ValidationError as PydanticError

from tasker.errors import ValidationError
from tasker.handlers.outcome_forms import BatchType, batch_id, range_length
from tasker.handlers.results import Model, described


class BatchAggregationResult(Model):
    """Totals over all batches; `success_rate` is 0.0 to 1.0; `errors` is capped, `error_count` is not."""

    total_processed: int
    total_succeeded: int
    total_failed: int
    total_skipped: int
    batch_count: int
    success_rate: float
    errors: list[dict[str, Any]] = Field(default_factory=list)
    error_count: int


def aggregate_batch_results(
    worker_results: list[dict[str, Any] | None], max_errors: int = 100
) -> BatchAggregationResult:
    """Add up the results of batch workers; a None (a worker resolved by an operator) is skipped.

    `items_processed` and `processed_count` are the same number. Without `items_succeeded`, every processed item that
    did not fail counts as succeeded.
    """
    present = [result for result in worker_results if result is not None]
    errors = [error for result in present for error in result.get("errors") or []]
    processed = sum(_processed(result) for result in present)
    succeeded = sum(_succeeded(result) for result in present)
    return BatchAggregationResult(
        total_processed=processed,
        total_succeeded=succeeded,
        total_failed=_total(present, "items_failed"),
        total_skipped=_total(present, "items_skipped"),
        batch_count=len(present),
        success_rate=succeeded / processed if processed else 0.0,
        errors=errors[:max_errors],
        error_count=len(errors),
    )


def _processed(result: Mapping[str, Any]) -> int:
    return int(result.get("items_processed", result.get("processed_count", 0)) or 0)


def _succeeded(result: Mapping[str, Any]) -> int:
    if result.get("items_succeeded") is not None:
        return int(result["items_succeeded"])
    return _processed(result) - int(result.get("items_failed") or 0)


def _total(results: Iterable[Mapping[str, Any]], key: str) -> int:
    return sum(int(result.get(key) or 0) for result in results)


class RustCursorConfig(Model):
    """Cursor in wire form: exactly the four fields that the engine reads."""

    batch_id: str
    start_cursor: Any
    end_cursor: Any
    batch_size: int


class CursorConfig(Model):
    """Cursor as handlers build it; `to_dict` converts it to wire form.

    `batch_size` (items in this batch) is optional for integer cursors, `batch_id` always. `step_size` is the distance
    between two items of an integer range.
    """

    start_cursor: Any
    end_cursor: Any
    step_size: int = 1
    metadata: dict[str, Any] = Field(default_factory=dict)
    batch_id: str | None = None
    batch_size: int | None = None

    def to_dict(self, index: int = 0) -> dict[str, Any]:
        """Return the wire form; `index` is the position among the batches, from 0.

        `step_size` and `metadata` are included unless they have their defaults. Raises `ValidationError` for a cursor
        that is not JSON, for a `step_size` below 1, and, without a `batch_size`, for a cursor that is not a range of
        integers or that ends before it starts.
        """
        wire = {
            "batch_id": self.batch_id or batch_id(index),
            "start_cursor": self.start_cursor,
            "end_cursor": self.end_cursor,
            "batch_size": self._items(index),
        }
        if self.step_size != 1:
            wire["step_size"] = self.step_size
        if self.metadata:
            wire["metadata"] = self.metadata
        _require_json(wire, index)
        return wire

    def _items(self, index: int) -> int:
        if self.step_size < 1:
            raise ValidationError(f"cursor_configs[{index}] has the step_size {self.step_size}, expected 1 or more")
        if self.batch_size is not None:
            return self.batch_size
        length = range_length(self.start_cursor, self.end_cursor, self.step_size)
        if length is None:
            raise self._sizeless("the cursor {} is not a range of integers and has no batch_size")
        if length == 0 and self.start_cursor != self.end_cursor:
            raise self._sizeless("the cursor {} ends before it starts and has no batch_size")
        return length

    def _sizeless(self, message: str) -> ValidationError:
        cursor = f"{self.start_cursor!r} .. {self.end_cursor!r}"
        return ValidationError(message.format(cursor), hint="give CursorConfig(..., batch_size=<items in this batch>)")


def wire_cursor(value: Any, index: int) -> dict[str, Any]:
    """Return any accepted form of a cursor (model, mapping, object with `to_dict`) in wire form.

    Raises `ValidationError` with the position and the invalid value.
    """
    if isinstance(value, CursorConfig):
        return value.to_dict(index)
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    elif hasattr(value, "to_dict"):
        value = value.to_dict()
    if not isinstance(value, Mapping) or not {"start_cursor", "end_cursor"} <= value.keys():
        raise ValidationError(
            f"cursor_configs[{index}] must have start_cursor and end_cursor, found {value!r:.100}",
            hint="use CursorConfig(start_cursor=..., end_cursor=...) or create_cursor_ranges(...)",
        )
    known = {key: value[key] for key in CursorConfig.model_fields if value.get(key) is not None}
    return _config({"start_cursor": None, "end_cursor": None, **known}, index).to_dict(index)


def _config(fields: dict[str, Any], index: int) -> CursorConfig:
    try:
        return CursorConfig(**fields)
    except PydanticError as error:
        wrong = [(p["loc"], p["msg"], p["input"]) for p in error.errors()]
        problems = "; ".join(f"{'.'.join(map(str, at))}: {msg}, found {described(value)}" for at, msg, value in wrong)
        raise ValidationError(f"cursor_configs[{index}] {problems}") from None


def _require_json(wire: dict[str, Any], index: int) -> None:
    try:
        json.dumps(wire, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValidationError(
            f"cursor_configs[{index}] is not JSON: {error}",
            hint="write dates as ISO 8601 text, UUIDs and decimals as text",
        ) from None


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
        outcome: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
        kind, cursors = outcome.get("type"), outcome.get("cursor_configs")
        if kind == BatchType.NO_BATCHES:
            return cls(total_items=0)
        if kind not in (None, BatchType.CREATE_BATCHES) or not isinstance(cursors, list):
            raise ValidationError(
                f"not a batch outcome: {value!r:.100}", hint='expected type "no_batches" or "create_batches"'
            )
        configs = [wire_cursor(item, i) for i, item in enumerate(cursors)]
        return cls._of(configs, outcome.get("total_items"), outcome.get("batch_metadata"))

    @classmethod
    def _of(cls, cursors: list[dict[str, Any]], total_items: Any, batch_metadata: Any) -> Self:
        fields = {"cursor_configs": cursors, "total_items": total_items, "batch_metadata": batch_metadata or {}}
        return cls.model_validate(fields)
