"""Form for the input of a task, generated from `input_schema`, and the input parsed from its fields.

Fields are identified by JSON pointers (`/card/number`). Parts that a form cannot show well (lists, alternatives,
objects with arbitrary keys) are fields for JSON. Typed values are parsed according to the schema; the validator decides
whether they are valid.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from tasker.dataclasses import dataclass
from tasker.server.json_request import RepeatedKey, parse_json
from tasker.server.web.presenters.text import compact, pretty

Schema = Mapping[str, Any]
Kind = Literal["text", "long", "number", "choice", "json", "group"]
DEEPEST = 3
"""Maximum depth of nested objects; deeper ones are shown as JSON."""
LONG_TEXT = 200
WHOLE = ""
"""JSON pointer of the whole input."""


@dataclass(frozen=True, slots=True)
class Field:
    """Part of the input. `value` is its current text; `choices` are the values of an enumeration as JSON."""

    pointer: str
    label: str
    kind: Kind
    required: bool = False
    description: str = ""
    value: str = ""
    choices: Sequence[str] = ()
    secret: bool = False
    parts: Sequence[Field] = ()
    hint: str = ""
    format: str = ""
    """Format of a text as the schema names it, such as `date`."""
    boolean: bool = False
    whole: bool = False


@dataclass(slots=True)
class Typed:
    """Input as far as it can be parsed, and the problems of the rest by JSON pointer."""

    context: dict[str, Any] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


def fields_of(schema: Schema | None, typed: Mapping[str, str]) -> list[Field]:
    """Return the fields of an input; `typed` has their texts by JSON pointer, with defaults for missing ones."""
    if schema is None or not _is_object(schema, schema):
        return [_json(WHOLE, "Input", schema or {}, True, typed)]
    return list(_parts(schema, schema, WHOLE, typed, 0))


def typed_in(schema: Schema | None, typed: Mapping[str, str]) -> Typed:
    """Return the input parsed from the typed texts."""
    result = Typed()
    if schema is None or not _is_object(schema, schema):
        whole = _parsed(typed.get(WHOLE, "") or "{}", WHOLE, result)
        result.context = whole if isinstance(whole, dict) else {}
        if WHOLE not in result.problems and not isinstance(whole, dict):
            result.problems[WHOLE] = "expected an object"
        return result
    result.context = _object(schema, schema, WHOLE, typed, result, 0)
    return result


def beside(fields: Sequence[Field], problems: Mapping[str, str]) -> dict[str, str]:
    """Return the problems by the pointers of the fields that show them: a value inside a list has no field of its own.
    What belongs to none is that of the whole input."""
    known, found = set(_pointers(fields)), dict[str, str]()
    for place, message in problems.items():
        at = place
        while at and at not in known:
            at = at.rpartition("/")[0]
        inside = place.removeprefix(at).strip("/")
        text = f"{inside}: {message}" if inside else message
        found[at] = f"{found[at]}; {text}" if at in found else text
    return found


def _pointers(fields: Sequence[Field]) -> Iterator[str]:
    for each in fields:
        yield each.pointer
        yield from _pointers(each.parts)


def _parts(root: Schema, schema: Schema, pointer: str, typed: Mapping[str, str], depth: int) -> Iterator[Field]:
    required = schema.get("required", ())
    for name, raw in schema.get("properties", {}).items():
        yield _field(root, resolved(root, raw), f"{pointer}/{escaped(name)}", name, name in required, typed, depth)


def _field(
    root: Schema, schema: Schema, pointer: str, label: str, required: bool, typed: Mapping[str, str], depth: int
) -> Field:
    described = str(schema.get("description", ""))
    label = str(schema.get("title", label))
    if _is_object(root, schema) and depth < DEEPEST:
        parts = list(_parts(root, schema, pointer, typed, depth + 1))
        return Field(pointer, label, "group", required, described, parts=parts)
    kind = _kind(schema)
    if kind == "json":
        return _json(pointer, label, schema, required, typed)
    default = schema.get("default")
    default_text = "" if default is None else (compact(default) if kind == "choice" else str(default))
    return Field(
        pointer,
        label,
        kind,
        required,
        described,
        typed.get(pointer, default_text),
        choices=[compact(choice) for choice in _choices(schema)],
        secret=schema.get("x-sensitive") is True,
        hint=_hint(schema),
        format=str(schema.get("format", "")),
        boolean=schema.get("type") == "boolean",
        whole=schema.get("type") == "integer",
    )


def _json(pointer: str, label: str, schema: Schema, required: bool, typed: Mapping[str, str]) -> Field:
    default = schema.get("default")
    text = typed.get(pointer, "" if default is None else pretty(default))
    described = str(schema.get("description", ""))
    secret = schema.get("x-sensitive") is True
    return Field(pointer, label, "json", required, described, text, secret=secret, hint="JSON")


def _kind(schema: Schema) -> Kind:
    if _choices(schema):
        return "choice"
    kind = schema.get("type")
    if kind in ("number", "integer"):
        return "number"
    if kind == "string":
        return "long" if schema.get("maxLength", 0) > LONG_TEXT else "text"
    return "json"


def _choices(schema: Schema) -> Sequence[Any]:
    if "enum" in schema:
        return list(schema["enum"])
    if "const" in schema:
        return [schema["const"]]
    return [True, False] if schema.get("type") == "boolean" else []


def _hint(schema: Schema) -> str:
    """Return the expected form of a value in a few words."""
    words = {
        "minimum": "at least {}",
        "maximum": "at most {}",
        "exclusiveMinimum": "more than {}",
        "exclusiveMaximum": "less than {}",
        "minLength": "at least {} characters",
        "maxLength": "at most {} characters",
        "pattern": "like {}",
        "format": "a {}",
        "multipleOf": "a multiple of {}",
    }
    whole = ["a whole number"] if schema.get("type") == "integer" else []
    return ", ".join([*whole, *(text.format(schema[key]) for key, text in words.items() if key in schema)])


def _object(
    root: Schema, schema: Schema, pointer: str, typed: Mapping[str, str], read: Typed, depth: int
) -> dict[str, Any]:
    made: dict[str, Any] = {}
    required = schema.get("required", ())
    for name, raw in schema.get("properties", {}).items():
        part, at = resolved(root, raw), f"{pointer}/{escaped(name)}"
        if _is_object(root, part) and depth < DEEPEST:
            inner = _object(root, part, at, typed, read, depth + 1)
            if inner or name in required:
                made[name] = inner
        elif text := typed.get(at, "").strip():
            made[name] = _read(part, text, at, read)
    return made


def _read(schema: Schema, text: str, pointer: str, typed: Typed) -> Any:
    """Return the typed value as its schema requires; an invalid number stays text, which the validator reports."""
    kind = _kind(schema)
    if kind in ("text", "long"):
        return text
    if kind == "number":
        try:
            return int(text) if schema.get("type") == "integer" or text.lstrip("+-").isdecimal() else float(text)
        except ValueError:
            return text
    return _parsed(text, pointer, typed)


def _parsed(text: str, pointer: str, typed: Typed) -> Any:
    try:
        return parse_json(text)
    except RepeatedKey as error:
        typed.problems[pointer] = str(error)
    except json.JSONDecodeError as error:
        typed.problems[pointer] = f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    except RecursionError:
        typed.problems[pointer] = "nested too deeply"
    return None


def _is_object(root: Schema, schema: Schema) -> bool:
    alternatives = any(key in schema for key in ("oneOf", "anyOf", "allOf", "patternProperties", "if"))
    return bool(resolved(root, schema).get("properties")) and not alternatives


def resolved(root: Schema, schema: Any, most: int = 20) -> Schema:
    """Return the schema, or the one in this template that it references."""
    for _ in range(most):
        ref = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(ref, str) or not ref.startswith("#/"):
            break
        target: Any = root
        for part in ref[2:].split("/"):
            target = target.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(target, Mapping) else {}
        schema = target
    return schema if isinstance(schema, Mapping) else {}


def escaped(name: str) -> str:
    """Return a name escaped as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")
