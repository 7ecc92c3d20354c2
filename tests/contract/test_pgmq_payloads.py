from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker_pgmq.payloads import from_jsonb, to_jsonb

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=8), json_values))
def test_a_json_object_comes_back_equal(value: dict[str, object]) -> None:
    assert json.loads(from_jsonb(to_jsonb(json.dumps(value).encode()))) == value


@given(st.binary())
def test_bytes_that_are_no_json_object_come_back_as_they_were(payload: bytes) -> None:
    assert from_jsonb(to_jsonb(payload)) == payload


@pytest.mark.parametrize("text", ['{"raw": 1}', '{"raw": "not base64"}', '{"raw": "AA==", "more": 1}', "null", "[1]"])
def test_what_others_stored_comes_back_as_its_json_text(text: str) -> None:
    assert from_jsonb(text) == text.encode()


def test_a_message_that_is_null_is_the_json_null() -> None:
    assert from_jsonb(None) == b"null"
