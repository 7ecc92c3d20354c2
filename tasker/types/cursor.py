"""Cursors: the start (inclusive) and end (exclusive) of a batch, both any JSON value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field
from pydantic import ValidationError as PydanticError

from tasker.contracts.expansion.outcome_forms import batch_id, range_length
from tasker.errors import ValidationError
from tasker.types.model import Model
from tasker.types.printable import described


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
        problems = "; ".join(f"{'.'.join(map(str, at))}: {msg}, found {described(given)}" for at, msg, given in wrong)
        raise ValidationError(f"cursor_configs[{index}] {problems}") from None


def _require_json(wire: dict[str, Any], index: int) -> None:
    try:
        json.dumps(wire, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValidationError(
            f"cursor_configs[{index}] is not JSON: {error}",
            hint="write dates as ISO 8601 text, UUIDs and decimals as text",
        ) from None
