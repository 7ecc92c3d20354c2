"""Conversion between bytes and jsonb. A JSON object is stored as it is, so that SQL can read it; other bytes are
wrapped."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, NoReturn


def to_jsonb(payload: bytes) -> str:
    """Return JSON text that jsonb accepts: the payload's own, or `{"raw": BASE64}` if it is not a JSON object."""
    try:
        value = json.loads(payload, parse_constant=_refuse)
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (ValueError, RecursionError):
        return _wrap(payload)
    # jsonb has no NUL; an object of the wrapper's form would be mistaken for the wrapper when it is read.
    plain = isinstance(value, dict) and value.keys() != {"raw"} and "\\u0000" not in text
    return text if plain else _wrap(payload)


def from_jsonb(text: str | None) -> bytes:
    """Return the payload that `to_jsonb` stored; other values are returned as their JSON text."""
    if text is None:
        return b"null"
    return _unwrap(text) if text.startswith('{"raw"') else text.encode()


def _wrap(payload: bytes) -> str:
    return json.dumps({"raw": base64.b64encode(payload).decode("ascii")})


def _unwrap(text: str) -> bytes:
    value: dict[str, Any] = json.loads(text)
    if value.keys() != {"raw"} or not isinstance(value["raw"], str):
        return text.encode()
    try:
        return base64.b64decode(value["raw"], validate=True)
    except binascii.Error:
        return text.encode()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
