"""Bodies in JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError

JSON = re.compile(r"application/([\w.+-]+\+)?json\b", re.IGNORECASE)
REPEATED = "is given twice in one object"


def is_json(request: Request) -> bool:
    """Return whether a request says that its body is JSON."""
    return JSON.match(request.headers.get("content-type", "")) is not None


async def read_json(request: Request) -> None:
    """Parse the body, once, for whoever calls `request.json()` later; what is no JSON is left to that.

    Raises `RequestValidationError` with the place of a key that one object has twice: parsers differ in which of the
    two values they take.
    """
    body = await request.body()
    if not body or not is_json(request):
        return
    repeated: list[tuple[Any, str]] = []

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            counts = Counter(key for key, _ in pairs)
            repeated.append((found, counts.most_common(1)[0][0]))
        return found

    try:
        document = json.loads(body, object_pairs_hook=made)
    except (ValueError, RecursionError):
        return
    if repeated:
        holder, key = repeated[-1]  # the outermost: it is part of the document
        place = next(path for path, value in _values(document) if value is holder)
        error = {"type": "json_repeated_key", "loc": ("body", *place, key), "msg": REPEATED, "input": None}
        raise RequestValidationError([error], body=document)
    request._json = document  # where `Request.json` looks first


def _values(document: Any) -> Iterator[tuple[tuple[int | str, ...], Any]]:
    """Yield every object and array of a document with its path."""
    waiting: list[tuple[tuple[int | str, ...], Any]] = [((), document)]
    while waiting:
        path, value = waiting.pop()
        yield path, value
        members = value.items() if isinstance(value, dict) else enumerate(value)
        waiting += [((*path, key), inner) for key, inner in members if isinstance(inner, dict | list)]
