"""Property names that a JSON Schema of an object lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

NESTED = ("allOf", "anyOf", "oneOf")
BRANCHES = ("if", "then", "else")


def listed_properties(schema: Any) -> frozenset[str] | None:
    """Return the names under `properties` in the schema and its parts, or None if other names are allowed.

    Other names are allowed with `additionalProperties: true` or a schema, with patterns of names, with a reference
    (which is not followed), and if nothing is listed. A list without a statement about other names is taken as
    complete: JSON Schema would allow more, but an unlisted name is usually a mistake.
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
