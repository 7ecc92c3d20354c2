"""Which names a JSON Schema of an object lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

NESTED = ("allOf", "anyOf", "oneOf")
BRANCHES = ("if", "then", "else")


def listed_properties(schema: Any) -> frozenset[str] | None:
    """The names under `properties`, here and in what the schema is put together from; None where others are welcome.

    Welcome they are with `additionalProperties: true` or a schema in its place, with patterns of names, with a
    reference (which is not followed), and where nothing is listed at all. A list without a word about others is taken
    for whole: JSON Schema lets more pass, but a name that is not on it is more often a slip than meant.
    """
    parts = list(_parts(schema))
    if any(_is_open(part) for part in parts):
        return None
    return frozenset(name for part in parts for name in part.get("properties", {})) or None


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(schema, Mapping):
        return
    yield schema
    below = [part for key in NESTED for part in schema.get(key, ())]
    below += [schema[key] for key in BRANCHES if key in schema]
    below += [*schema.get("dependentSchemas", {}).values()]
    for part in below:
        yield from _parts(part)


def _is_open(part: Mapping[str, Any]) -> bool:
    others = [part.get("additionalProperties", False), part.get("unevaluatedProperties", False)]
    elsewhere = {"patternProperties", "$ref", "$dynamicRef"} & part.keys()
    return bool(elsewhere) or any(value is not False for value in others)
