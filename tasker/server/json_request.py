"""JSON that people and programs send: bodies of requests, and texts in forms."""

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
Path = tuple[int | str, ...]


class RepeatedKey(ValueError):
    """A key that one object has twice: parsers differ in which of the two values they take."""

    def __init__(self, path: Path, document: Any) -> None:
        super().__init__(f"{json_pointer(path)}: {REPEATED}")
        self.path, self.document = path, document


def is_json(request: Request) -> bool:
    """Return whether the request declares its body as JSON."""
    return JSON.match(request.headers.get("content-type", "")) is not None


async def read_json(request: Request) -> None:
    """Parse the body once for later calls of `request.json()`, which reports a body that is not valid JSON.

    Raises `RequestValidationError` with the place of a key that one object has twice.
    """
    body = await request.body()
    if not body or not is_json(request):
        return
    try:
        document = parse_json(body)
    except RepeatedKey as error:
        violation = {"type": "json_repeated_key", "loc": ("body", *error.path), "msg": REPEATED, "input": None}
        raise RequestValidationError([violation], body=error.document) from None
    except (ValueError, RecursionError):
        return
    request._json = document  # where `Request.json` looks first


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raises `RepeatedKey`, and `ValueError` and `RecursionError` as `json.loads`."""
    repeated: list[tuple[Any, str]] = []

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(pairs)
        if len(mapping) != len(pairs):
            counts = Counter(key for key, _ in pairs)
            repeated.append((mapping, counts.most_common(1)[0][0]))
        return mapping

    document = json.loads(text, object_pairs_hook=made)
    if repeated:
        holder, key = repeated[-1]  # the outermost object, which is part of the document
        place = next(path for path, value in _values(document) if value is holder)
        raise RepeatedKey((*place, key), document)
    return document


def json_pointer(path: Path) -> str:
    """Return a path of keys and indexes as a JSON pointer."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def _values(document: Any) -> Iterator[tuple[Path, Any]]:
    """Yield every object and array of a document with its path."""
    waiting: list[tuple[Path, Any]] = [((), document)]
    while waiting:
        path, value = waiting.pop()
        yield path, value
        members = value.items() if isinstance(value, dict) else enumerate(value)
        waiting += [((*path, key), inner) for key, inner in members if isinstance(inner, dict | list)]
