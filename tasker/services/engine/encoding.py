"""The arguments of the engine's functions as JSON: encoded in one place, around what is encoded already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from tasker.contracts.json_text import JsonText

_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
"""What `json` refuses is refused here, too; `JsonText` goes through `_embedded`."""


def to_json(args: Mapping[str, Any]) -> str:
    """The arguments as JSON text; a `JsonText` in them is embedded as it is. Raises `TypeError` for what is not JSON.

    The fast encoder knows no whole numbers beyond 64 bits and no halves of surrogate pairs. Such arguments are encoded
    by the standard library: the database takes the numbers, and says itself what it does not store.
    """
    try:
        return orjson.dumps(args, _embedded, _OPTIONS).decode()
    except TypeError:
        return json.dumps(args, default=_decoded)


def _embedded(value: Any) -> orjson.Fragment:
    if isinstance(value, JsonText):
        return orjson.Fragment(value.text)
    raise TypeError(f"a value of type {type(value).__name__} is not JSON")


def _decoded(value: Any) -> Any:
    if isinstance(value, JsonText):
        return json.loads(value.text)
    raise TypeError(f"a value of type {type(value).__name__} is not JSON")
