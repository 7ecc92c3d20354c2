"""Actionable messages for errors of `jsonschema`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.schema_limits import PatternRefused, is_known

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


class SchemaProblem(NamedTuple):
    """Location inside a schema and its problem."""

    path: tuple[str | int, ...]
    message: str


NAMES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def found(value: Any) -> str:
    """Describe a value for a message, shortened."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = f"the text '{value}'" if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def locations_of(error: ValidationError) -> Iterator[tuple[str, str]]:
    """Yield path and message of an error; an error about several keys yields a pair for each."""
    path, instance = error.json_path, cast("dict[str, Any]", error.instance)
    if error.validator == "required":
        required = cast("list[str]", error.validator_value)
        yield from ((f"{path}.{name}", "is required and missing") for name in required if name not in instance)
    elif error.validator == "additionalProperties" and error.validator_value is False:
        schema = cast("dict[str, Any]", error.schema)
        for name in (name for name in instance if not is_known(name, schema)):
            yield f"{path}.{name}", "is not a known key" + _suggestion(name, schema.get("properties", {}))
    else:
        yield path, message_of(error)


def message_of(error: ValidationError) -> str:
    """Return what was expected and what was found."""
    if isinstance(error.cause, PatternRefused):
        return str(error.cause)
    describe = MESSAGES.get(str(error.validator))
    text = describe(error.validator_value, error.instance) if describe else error.message
    return text if len(text) <= 300 else text[:297] + "..."


def _expected_type(expected: Any, value: Any) -> str:
    kinds = [expected] if isinstance(expected, str) else expected
    return f"expected {' or '.join(NAMES.get(kind, kind) for kind in kinds)}, found {found(value)}"


def _expected_one_of(expected: Any, value: Any) -> str:
    hint = did_you_mean(value, [e for e in expected if isinstance(e, str)]) if isinstance(value, str) else None
    return f"expected one of {', '.join(map(str, expected))}, found {found(value)}" + (f"; {hint}" if hint else "")


def _any_of(expected: Any, value: Any) -> str:
    return f"{found(value)} fits none of the allowed forms"


def _comparison(words: str, unit: str = "") -> Callable[[Any, Any], str]:
    def describe(limit: Any, value: Any) -> str:
        amount = f"{len(value)}{unit}" if unit else found(value)
        return f"expected {words} {limit}{unit}, found {amount}"

    return describe


MESSAGES: dict[str, Callable[[Any, Any], str]] = {
    "type": _expected_type,
    "enum": _expected_one_of,
    "const": lambda expected, value: f"expected {found(expected)}, found {found(value)}",
    "anyOf": _any_of,
    "oneOf": _any_of,
    "minimum": _comparison("at least"),
    "maximum": _comparison("at most"),
    "exclusiveMinimum": _comparison("more than"),
    "exclusiveMaximum": _comparison("less than"),
    "multipleOf": _comparison("a multiple of"),
    "minLength": _comparison("at least", " characters"),
    "maxLength": _comparison("at most", " characters"),
    "minItems": _comparison("at least", " items"),
    "maxItems": _comparison("at most", " items"),
    "pattern": lambda pattern, value: f"{found(value)} does not match the pattern {pattern}",
    "format": lambda name, value: f"{found(value)} is not a valid {name}",
    "uniqueItems": lambda _, value: "the items of the list must differ from each other",
}


def _suggestion(name: str, known: Any) -> str:
    hint = did_you_mean(name, known)
    if hint:
        return f"; {hint}"
    return f"; known: {listed(known)}" if known else ""
