"""Check that a JSON Schema is valid, and that a value fits it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from tasker.dataclasses import dataclass
from tasker.template.schema_limits import (
    MOST_WORK,
    PatternRefused,
    TooMuchWork,
    begin,
    bounded,
    schema_formats,
    value_formats,
)
from tasker.template.schema_messages import SchemaProblem, locations_of, message_of

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

    from tasker.template.plan import Plan

__all__ = ["SchemaMismatch", "check_input", "check_result", "schema_problems"]

DATA_KEYWORDS = ("enum", "const", "default", "examples")
"""Keywords whose values are data, in which `$ref` has no meaning."""

NAMES_OF_PROPERTIES = (("properties",), ("patternProperties",), ("$defs",), ("definitions",), ("dependentSchemas",))
"""Keywords whose value maps names to schemas; the names are not keywords."""
MOST_PREPARED = 256
"""Number of cached validators."""

MOST_PROBLEMS = 100
"""Maximum number of reported problems."""


@dataclass(frozen=True, slots=True)
class SchemaMismatch:
    """Location in a value that does not match its schema (`$.items[0].sku`), and the reason."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"

    def to_dict(self) -> dict[str, str]:
        """Return the problem as plain data."""
        return {"path": self.path, "message": self.message}


def check_input(plan: Plan, value: Any) -> list[SchemaMismatch]:
    """Return every mismatch of a task's context with the template's `input_schema`; empty if it matches."""
    return [] if plan.input_schema is None else check_result(plan.input_schema, value)


def check_result(schema: Mapping[str, Any], value: Any, most_work: int = MOST_WORK) -> list[SchemaMismatch]:
    """Return the mismatches of a value, such as a handler's result, with the schema; empty if it matches.

    At most `MOST_PROBLEMS` are returned. A check that takes more than `most_work` steps is aborted, which is a problem,
    too.
    """
    begin(most_work)
    try:
        errors = list(islice(prepared(_Itself(schema)).iter_errors(value), MOST_PROBLEMS + 1))
        problems = [problem for error in errors[:MOST_PROBLEMS] for problem in _problems(error)]
    except Exception as error:
        return [SchemaMismatch("$", f"the schema cannot be used: {_why_unusable(error)}")]
    if len(errors) > MOST_PROBLEMS:
        problems.append(SchemaMismatch("$", f"there are more problems than these {MOST_PROBLEMS}"))
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.path)


def _why_unusable(error: Exception) -> str:
    from referencing.exceptions import Unresolvable

    if isinstance(error, Unresolvable):
        target = f"#{error.ref}" if error.ref.startswith("/") else error.ref
        return f"it refers to `{target}`, which does not exist"
    if isinstance(error, RecursionError):
        return "it refers to itself without end"
    if isinstance(error, (PatternRefused, TooMuchWork)):
        return str(error)
    raise error


def schema_problems(schema: Mapping[str, Any]) -> list[SchemaProblem]:
    """Return every problem that makes a schema invalid."""
    from jsonschema.validators import validator_for

    unknown: Any = None
    dialect = validator_for(schema, default=unknown) if "$schema" in schema else _default_dialect()
    if dialect is unknown:
        return [SchemaProblem(("$schema",), f"`{schema['$schema']}` is not a dialect of JSON Schema that Tasker knows")]
    meta = dialect(dialect.META_SCHEMA, format_checker=schema_formats(dialect))
    errors = [_best(error) for error in meta.iter_errors(schema)]
    invalid = [SchemaProblem(tuple(error.absolute_path), message_of(error)) for error in errors]
    return list(dict.fromkeys(invalid)) or list(_broken_references(schema, schema, ())) or list(_unusable(schema))


def _default_dialect() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator


class _Itself:
    """Hash key of a schema by identity, so that the schema's content is not compared."""

    __slots__ = ("schema",)

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.schema is self.schema


@lru_cache(maxsize=MOST_PREPARED)
def prepared(key: _Itself) -> Validator:
    """Return the validator of a schema, cached because it takes longer to create than to use. Schemas never change."""
    from jsonschema.validators import validator_for

    schema = key.schema
    # An explicit registry: without one, jsonschema would fetch remote references over the network.
    dialect = validator_for(schema, default=_default_dialect())
    # Without `$schema`: a reference to the top would switch to the dialect that it names, which is unbounded.
    plain = {key: value for key, value in schema.items() if key != "$schema"}
    made: Validator = bounded(dialect)(plain, registry=_registry(), format_checker=value_formats(dialect))
    return made


def _registry() -> Any:
    """Return a registry that contains only the meta-schemas of JSON Schema."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    return REGISTRY


def _problems(error: ValidationError) -> Iterator[SchemaMismatch]:
    for path, message in locations_of(_best(error)):
        yield SchemaMismatch(path, message)


def _best(error: ValidationError) -> ValidationError:
    """Return the error of the nearest alternative inside an `anyOf` or `oneOf`."""
    from jsonschema.exceptions import best_match

    best = best_match([error]) or error
    words = [inner for inner in best.context or () if inner.validator == "enum" and isinstance(best.instance, str)]
    return words[0] if words else best


def _broken_references(part: Any, schema: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[SchemaProblem]:
    if isinstance(part, Mapping):
        reference = part.get("$ref")
        if isinstance(reference, str) and not _resolves(reference, schema):
            yield SchemaProblem((*path, "$ref"), f"`{reference}` refers to nothing in this schema")
        for key, value in part.items():
            yield from _broken_references(value, schema, (*path, key)) if key not in DATA_KEYWORDS else ()
    elif isinstance(part, list):
        for index, value in enumerate(part):
            yield from _broken_references(value, schema, (*path, index))


def _unusable(schema: Mapping[str, Any]) -> Iterator[SchemaProblem]:
    """Yield parts of a valid schema that cannot be checked here within bounds."""
    paths = {path[-1]: path for path in reversed(list(_keywords(schema, ())))}
    if "patternProperties" in paths and (path := paths.get("unevaluatedProperties")):
        reason = (
            "`unevaluatedProperties` cannot be used in a schema with `patternProperties`: use `additionalProperties`"
        )
        yield SchemaProblem(path, reason)
    yield from (
        SchemaProblem(path, "only the top of a schema names its dialect")
        for path in _keywords(schema, ())
        if path[-1] == "$schema" and len(path) > 1
    )


def _keywords(part: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if isinstance(part, list):
        for index, value in enumerate(part):
            yield from _keywords(value, (*path, index))
    elif isinstance(part, Mapping):
        names = path[-1:] in NAMES_OF_PROPERTIES and path[-2:-1] not in NAMES_OF_PROPERTIES
        for key, value in part.items():
            if not names:
                yield (*path, key)
            if names or key not in DATA_KEYWORDS:
                yield from _keywords(value, (*path, key))


def _resolves(reference: str, schema: Mapping[str, Any]) -> bool:
    from referencing import Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    root = Resource.from_contents(schema, default_specification=DRAFT202012)
    base = str(schema.get("$id", ""))
    try:
        _registry().with_resource(base, root).resolver(base).lookup(reference)
    except Unresolvable:
        return False
    return True


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
