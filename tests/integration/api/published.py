"""The published interface as facts, and whether ours, or a real answer, has all of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FACTS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "data" / "http_interface.json").read_text())
PYTHON = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict}
Document = Mapping[str, Any]


def operations(side: str) -> list[tuple[str, str, Document]]:
    """Method, path and facts of every operation."""
    return [(each["method"], each["path"], each) for each in FACTS[side]["operations"]]


def shape(side: str, name: str) -> Document:
    """The fields of a type."""
    found: Document = FACTS[side]["shapes"][name]
    return found


def same_place(path: str) -> str:
    """The path without the names of its parameters."""
    return re.sub(r"{\w+}", "{}", path)


def resolved(document: Document, schema: Document) -> Document:
    """The schema behind a reference."""
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def lacks(document: Document, schema: Document, side: str, wanted: str) -> Iterator[str]:
    """What the schema of an answer lacks of a published type."""
    schema = resolved(document, schema)
    if wanted.startswith("array of "):
        yield from lacks(document, schema.get("items", {}), side, wanted.removeprefix("array of "))
        return
    for name, kind in shape(side, wanted).items():
        if name in ("values", "one_of"):
            continue
        plain = name.rstrip("?")
        if plain not in schema.get("properties", {}):
            yield f"{wanted}.{plain} is missing"
        elif "null" in kind and schema["properties"][plain].get("type") == "null":
            continue  # always null, which is one of the published values
        elif (inner := re.sub(r"^(null \| )", "", kind)).rpartition(" ")[2] in FACTS[side]["shapes"]:
            yield from lacks_in(document, schema["properties"][plain], side, inner)


def lacks_in(document: Document, schema: Document, side: str, wanted: str) -> Iterator[str]:
    """As `lacks`, of a field that may be null."""
    options = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    yield from lacks(document, options[0], side, wanted)


def misfits(value: Any, side: str, kind: str, place: str = "answer") -> Iterator[str]:
    """Where a real value is not what a published type says."""
    kind, shapes = re.sub(r" \(.*\)", "", kind), FACTS[side]["shapes"]
    if "null" in kind and value is None:
        return
    kind = re.sub(r"^null \| | \| null$", "", kind)
    if kind.startswith("array of "):
        for number, item in enumerate(value):
            yield from misfits(item, side, kind.removeprefix("array of "), f"{place}[{number}]")
    elif "values" in shapes.get(kind, {}):
        if value not in shapes[kind]["values"]:
            yield f"{place}: {value!r} is no {kind}"
    elif kind in shapes:
        for name, inner in shapes[kind].items():
            if name.rstrip("?") in value:
                yield from misfits(value[name.rstrip("?")], side, inner, f"{place}.{name.rstrip('?')}")
            elif not name.endswith("?"):
                yield f"{place}.{name} is missing"
    elif kind in PYTHON and not isinstance(value, PYTHON[kind]):  # type: ignore[arg-type]
        yield f"{place}: {value!r} is no {kind}"
