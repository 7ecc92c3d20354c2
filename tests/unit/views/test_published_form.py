"""Views are published and read again without loss."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from inspect import getmembers_static
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import pytest
from pydantic import TypeAdapter

from tasker.client import HttpClient
from tasker.operations.operation import Operation
from tasker.server.operation_routes import published_type
from tasker.server.rendering import Json
from tasker.views.dead_letters import DeadLetter
from tasker.views.model import Keys, decode, encode, is_camel_case, published, without_none
from tests.support.tables import for_each

OPERATIONS = [member for _, member in getmembers_static(HttpClient) if isinstance(member, Operation)]
PLAIN: dict[Any, Any] = {str: "text", int: 3, float: 1.5, bool: True, datetime: datetime(2026, 1, 31, 12, tzinfo=UTC)}


def sample(kind: Any, *, full: bool) -> Any:
    """A value of this type; without `full` None wherever it may be."""
    kind, optional = without_none(kind)
    if optional and not full:
        return None
    if is_camel_case(kind):
        return get_args(kind.__origin__)[-1]
    keys = ["key"]
    if get_origin(kind) is Annotated:
        keys = [key for mark in kind.__metadata__ if isinstance(mark, Keys) for key in mark.keys]
        kind = kind.__origin__
    if is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        return kind(**{field.name: sample(hints[field.name], full=full) for field in fields(kind)})  # type: ignore[operator]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return arguments[-1]
    if origin in (Sequence, list, tuple):
        items = [sample(arguments[0], full=full)]
        return tuple(items) if origin is tuple else items
    if origin in (Mapping, dict):
        return {key: sample(arguments[1], full=full) for key in keys}
    return {"a": [1]} if kind is Any else PLAIN[kind]


@for_each([(operation, full) for operation in OPERATIONS for full in (True, False)])
def test_answers_are_decoded_as_they_were(case: tuple[Operation[..., object], bool]) -> None:
    operation, full = case
    value = sample(operation.answer, full=full)
    sent = json.loads(Json(encode(operation.answer, value)).body)

    assert decode(operation.answer, sent) == value
    TypeAdapter(published_type(operation.answer)).validate_python(sent)


@for_each(OPERATIONS)
def test_answers_have_exactly_the_described_fields(operation: Operation[..., object]) -> None:
    sent = json.loads(Json(encode(operation.answer, sample(operation.answer, full=True))).body)
    schema = TypeAdapter(published_type(operation.answer)).json_schema()
    described = schema.get("items", schema)
    if "properties" not in described and "$ref" not in described:
        return  # a mapping, or a text
    described = schema["$defs"][described["$ref"].rpartition("/")[2]] if "$ref" in described else described

    first = sent[0] if isinstance(sent, list) else sent
    assert first.keys() == described["properties"].keys() == set(described["required"])


def test_words_are_published_in_camel_case_and_a_second_name_repeats_a_field() -> None:
    sent = encode(DeadLetter, sample(DeadLetter, full=True))

    assert (sent["dlq_reason"], sent["resolution_status"]) == ("CompensationFailed", "Cancelled")
    assert sent["resolution_timestamp"] == sent["resolved_at"] == PLAIN[datetime]


@published("Renamed", aliases={"name": "published_name"})
@dataclass(frozen=True)
class View:
    name: str
    note: str | None
    count: int = 7


def test_a_field_has_its_published_name_in_both_directions() -> None:
    assert encode(Sequence[View], [View("a", None)]) == [{"published_name": "a", "note": None, "count": 7}]
    assert decode(Sequence[View], [{"published_name": "a", "more": 1}]) == [View("a", None, 7)]


def test_a_field_that_must_be_there_is_missed() -> None:
    with pytest.raises(KeyError, match="published_name"):
        decode(View, {"note": "x"})
