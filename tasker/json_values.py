"""JSON that PostgreSQL can store: strict checks, text that is already encoded, encoding.

`encode` is on the hot path of every result: the C encoder writes the text, cheap checks detect problems, and only then
does a slow walk find out what is wrong and where.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import orjson

from tasker.dataclasses import dataclass
from tasker.errors import NotStorable, UsageError
from tasker.known_secrets import KNOWN


@dataclass(frozen=True, slots=True)
class JsonText:
    """Text of one JSON value: results, inputs, failures and contexts are encoded once and never decoded again."""

    text: str

    @property
    def size(self) -> int:
        """Return the length in bytes of UTF-8. Raises `UnicodeEncodeError` for lone surrogates."""
        return len(self.text) if self.text.isascii() else len(self.text.encode())


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


VALUE_LIMIT_BYTES = 4 * 1024 * 1024
"""Maximum size of a task's context and of a step's result, as JSON."""


MAX_DEPTH = 100
WARN_BYTES = 256 * 1024
"""Size above which a warning is logged."""

_to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")).encode
_STRINGS = {str}


def encode(value: Any, *, limit_bytes: int = VALUE_LIMIT_BYTES) -> JsonText:
    """Encode the value as JSON text, once for all uses.

    Raises `NotStorable` for anything that is not strict JSON (NaN, Infinity, keys that are not text, foreign types),
    for what PostgreSQL refuses (NUL, lone surrogates), for more than 100 levels, for more than `limit_bytes`, and for a
    value that contains a secret that this process has read.
    """
    try:
        encoded = JsonText(_to_json(value))
        size = encoded.size
    except (TypeError, ValueError, RecursionError) as error:
        raise _violation(value) or NotStorable.at("$", f"it is not JSON: {error}") from None
    if ("\\u0000" in encoded.text or not _is_regular(value)) and (violation := _violation(value)):
        raise violation
    if size > limit_bytes:
        raise NotStorable.at(
            "$",
            f"{size:,} bytes of JSON are more than the {limit_bytes:,} allowed",
            too_large=True,
            hint="store the data elsewhere and return a reference to it",
        )
    if KNOWN and (path := KNOWN.path_in(value, encoded.text)) is not None:
        raise NotStorable.secret(path)
    return encoded


def as_stored(encoded: JsonText) -> Any:
    """Return the value as the database returns it: keys ordered by length, numbers without exponent or minus zero."""
    return _stored.decode(encoded.text)


def _number(text: str) -> int | float:
    """Parse a number with a point or an exponent as PostgreSQL stores it."""
    value = float(text)
    if value and "e" not in text:
        return value
    plain = format(abs(Decimal(text)) if not value else Decimal(text), "f")
    return float(plain) if "." in plain else int(plain)


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > 1:
        pairs.sort(key=lambda pair: (len(key := pair[0].encode()), key))
    return dict(pairs)


_stored = json.JSONDecoder(parse_float=_number, object_pairs_hook=_mapping)


def _is_regular(value: Any) -> bool:
    """Return whether all keys are text and at most `MAX_DEPTH` levels are nested. Iterates instead of recursing."""
    level = [value] if isinstance(value, (dict, list, tuple)) else []
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            return False
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict) and item and set(map(type, item)) != _STRINGS:
                return False
            children = item.values() if isinstance(item, dict) else item
            below += [child for child in children if isinstance(child, (dict, list, tuple))]
        level = below
    return True


def _violation(value: Any) -> NotStorable | None:
    """Return the first problem with its path, or None."""
    return next(_violations(value, "$", 0), None)


def _violations(value: Any, path: str, depth: int) -> Iterator[NotStorable]:
    if isinstance(value, (dict, list, tuple)):
        if depth >= MAX_DEPTH:
            yield NotStorable.at(_shortened(path), f"nested deeper than {MAX_DEPTH} levels, or inside itself")
            return
        yield from _of_mapping(value, path, depth) if isinstance(value, dict) else _of_list(value, path, depth)
    elif reason := _scalar_problem(value):
        yield NotStorable.at(path, reason)


def _of_mapping(value: dict[Any, Any], path: str, depth: int) -> Iterator[NotStorable]:
    for key, child in value.items():
        if not isinstance(key, str):
            yield NotStorable.at(path, f"the key {key!r} is of type {type(key).__name__}; keys must be text")
        elif problem := _scalar_problem(key):
            yield NotStorable.at(path, f"the key {key!r} {problem}")
        else:
            yield from _violations(child, f"{path}.{key}", depth + 1)


def _of_list(value: list[Any] | tuple[Any, ...], path: str, depth: int) -> Iterator[NotStorable]:
    for index, child in enumerate(value):
        yield from _violations(child, f"{path}[{index}]", depth + 1)


def _scalar_problem(value: Any) -> str | None:
    if isinstance(value, str):
        return text_problem(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not a JSON number; use null or text"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 13_000:
        return "the whole number has thousands of digits; use text"
    if value is None or isinstance(value, (bool, int, float)):
        return None
    return f"a value of type {type(value).__name__} is not JSON; {_ADVICE.get(type(value).__name__, 'convert it')}"


_ADVICE = {
    "datetime": "use .isoformat()",
    "date": "use .isoformat()",
    "Decimal": "use str() or float()",
    "UUID": "use str()",
    "set": "use sorted() or list()",
    "bytes": "decode it, or use base64 text",
    "coroutine": "await it",
}


def text_problem(text: str) -> str | None:
    """Return the reason why PostgreSQL refuses a text, or None if it accepts it."""
    if "\0" in text:
        return "contains the NUL character, which PostgreSQL cannot store"
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        return "contains half of a surrogate pair, which is not valid Unicode"
    return None


def require_findable(text: Any, what: str) -> None:
    """Raise `UsageError` for a search text that no database can contain; `what` names the text in the message."""
    if isinstance(text, str) and (problem := text_problem(text)):
        raise UsageError(f"{what}: {text!r:.80} {problem}", hint="take it out: nothing has such a name")


def _shortened(path: str) -> str:
    return path if len(path) <= 80 else f"{path[:60]}...{path[-15:]}"
