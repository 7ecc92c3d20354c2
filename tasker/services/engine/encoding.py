"""JSON encoding of the arguments of engine functions, with `JsonText` values embedded unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from tasker.contracts.json_text import JsonText

_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
"""Passed through so that `_embedded` sees them: it embeds `JsonText` and refuses what `json` refuses."""


def to_json(args: Mapping[str, Any]) -> str:
    """Return the arguments as JSON text; a `JsonText` in them is embedded unchanged. Raises `TypeError` if not JSON.

    orjson refuses integers beyond 64 bits and lone surrogates. Such arguments are encoded by the standard library: the
    database accepts the integers, and reports itself what it cannot store.
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
