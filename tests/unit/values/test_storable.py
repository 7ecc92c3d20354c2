"""What may be stored, and how the place of what may not is told."""

from __future__ import annotations

import json
import re
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.errors import NotStorable
from tasker.json_values import MAX_DEPTH, VALUE_LIMIT_BYTES, WARN_BYTES, encode

LONE = "\ud800"


class Colour(StrEnum):
    RED = "red"


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def refusal(value: Any) -> NotStorable:
    with pytest.raises(NotStorable) as error:
        encode(value)
    return error.value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ({}, "{}"),
        ({"a": [1, 2.5, True, None, "x"]}, '{"a":[1,2.5,true,null,"x"]}'),
        ((1, 2), "[1,2]"),
        ({Colour.RED: Colour.RED}, '{"red":"red"}'),
        ("é😀", '"é😀"'),
        ({"a": "\\u0000 and \\ud800 are only letters here"}, None),
    ],
)
def test_json_is_stored_as_it_is(value: Any, text: str | None) -> None:
    encoded = encode(value)
    assert text is None or encoded.text == text
    assert encoded.size == len(encoded.text.encode())
    assert json.loads(encoded.text) == json.loads(json.dumps(value))


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"a": [1, float("nan")]}, "$.a[1]", "nan is not a JSON number"),
        ({"a": float("inf")}, "$.a", "inf is not a JSON number"),
        ({"a": {"b": "x\0y"}}, "$.a.b", "NUL"),
        ({"a\0": 1}, "$", "NUL"),
        ({"a": [LONE]}, "$.a[0]", "surrogate"),
        ({LONE: 1}, "$", "surrogate"),
        ("\ud83d\ude00", "$", "surrogate"),
        ({"a": [{1: "x"}]}, "$.a[0]", "the key 1 is of type int"),
        ({None: 1}, "$", "the key None is of type NoneType"),
        ({("a", 1): 1}, "$", "is of type tuple"),
        ({"at": datetime(2026, 1, 1)}, "$.at", "datetime is not JSON; use .isoformat()"),
        ({"price": Decimal("1.5")}, "$.price", "Decimal is not JSON"),
        ({"ids": {1, 2}}, "$.ids", "set is not JSON"),
        ({"raw": b"x"}, "$.raw", "bytes is not JSON"),
        ({"n": 10**5000}, "$.n", "digits"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_its_place(value: Any, path: str, reason: str) -> None:
    error = refusal(value)
    assert error.path == path
    assert reason in error.reason
    assert error.error_type == "not_storable"
    assert error.message == f"{path}: {error.reason}"


def test_a_hundred_levels_are_stored_and_one_more_is_not() -> None:
    assert encode(nested(MAX_DEPTH)).size == 2 * MAX_DEPTH + 1
    assert "deeper than 100 levels" in refusal(nested(MAX_DEPTH + 1)).reason


def test_a_value_that_contains_itself_is_refused() -> None:
    value: dict[str, Any] = {"a": 1}
    value["self"] = value
    assert "or inside itself" in refusal(value).reason


def test_thousands_of_levels_are_refused_without_running_out_of_stack() -> None:
    assert "deeper than 100 levels" in refusal(nested(100_000)).reason


def test_many_containers_side_by_side_are_not_deep() -> None:
    assert encode([{"row": [n]} for n in range(1000)]).size < WARN_BYTES


def test_a_too_large_value_is_refused() -> None:
    frame = len('""')
    assert encode("x" * (VALUE_LIMIT_BYTES - frame)).size == VALUE_LIMIT_BYTES
    error = refusal("x" * (VALUE_LIMIT_BYTES - frame + 1))
    assert error.error_type == "result_too_large"
    assert "4,194,305 bytes" in error.message


def test_the_size_is_counted_in_bytes_and_the_limit_can_be_set() -> None:
    assert encode("é" * 4).size == 10
    with pytest.raises(NotStorable, match="10 bytes"):
        encode("é" * 4, limit_bytes=9)


any_text = st.text(st.characters())
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_what_postgresql_cannot_store_is_refused_and_all_else_reads_back_equal(value: Any) -> None:
    if _has_forbidden_characters(value):
        with pytest.raises(NotStorable, match=r"NUL|surrogate"):
            encode(value)
    else:
        assert json.loads(encode(value).text) == value


def _has_forbidden_characters(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_forbidden_characters, [*value, *value.values()]))
    if isinstance(value, list):
        return any(map(_has_forbidden_characters, value))
    return isinstance(value, str) and re.search("[\\0\\ud800-\\udfff]", value) is not None
