"""Arguments of the engine's functions as JSON: what is encoded already stays as it is, and no number is lost."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tasker.json_values import JsonText, encode, to_json


def test_what_is_encoded_already_is_embedded_as_it_is() -> None:
    result = JsonText('{"price":1.10,"é":[1e400]}')

    assert to_json({"items": [{"r": result}], "wait": True}) == f'{{"items":[{{"r":{result.text}}}],"wait":true}}'


@pytest.mark.parametrize(
    "value", [2**64, -(2**63) - 1, 10**300, {"deep": [2**70]}, "half of a pair: \ud800", {1: "one"}]
)
def test_what_the_fast_encoder_does_not_know_is_encoded_as_ever(value: Any) -> None:
    assert to_json({"value": value}) == json.dumps({"value": value})


def test_a_number_beyond_64_bits_beside_what_is_encoded_already_spoils_neither() -> None:
    text = to_json({"d": 10**30, "e": encode({"message": "é", "size": 2**80})})

    assert json.loads(text) == {"d": 10**30, "e": {"message": "é", "size": 2**80}}


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", datetime(2026, 1, 1, tzinfo=UTC), object()])
def test_what_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="not JSON"):
        to_json({"value": value})
