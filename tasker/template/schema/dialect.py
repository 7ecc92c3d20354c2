"""The dialects of JSON Schema as they are used here: patterns in linear time, and a bound on the work of one check.

What `jsonschema` does in quadratic time is done in linear time or counts by the square. Schemas that refer to
themselves in several alternatives would take exponential time in the depth of a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any

from tasker.template.schema.patterns import PatternRefused, compiled, search, size_of

MOST_WORK = 10_000_000
"""Keywords that one check applies, each about a microsecond."""

ERROR_WORK = 20
"""What one error counts, found in an alternative or not: it holds the value as text."""

REGEX_WORK = 250
"""What making a pattern ready counts, for each of its states: a class of Unicode's letters in the worst case."""

FORMATS = ("date", "email", "idn-email", "ip-address", "ipv4", "ipv6", "time", "uuid")
"""What `jsonschema` checks by itself, in linear time. Others are checked where a package happens to be installed, with
patterns of its own: one process would take what another refuses."""

Keyword = Callable[[Any, Any, Any, Any], Iterator[Any] | None]


class TooMuchWork(Exception):
    """A check was given up."""

    def __init__(self, most: int) -> None:
        super().__init__(f"checking this value takes more than {most} steps")


class _Work:
    """The steps of one check."""

    def __init__(self, most: int) -> None:
        self.most = self.left = most


_work: ContextVar[_Work] = ContextVar("work")


def begin(most: int) -> None:
    """The check that begins here may take so many steps."""
    _work.set(_Work(most))


def spend(steps: int) -> None:
    """Count steps of the check. Raises `TooMuchWork`."""
    work = _work.get()
    work.left -= steps
    if work.left < 0:
        raise TooMuchWork(work.most)


@cache
def bounded(dialect: Any) -> Any:
    """The dialect with these keywords in place of its own. Checks with it raise `PatternRefused` and `TooMuchWork`."""
    from jsonschema.validators import extend

    keywords = {name: OWN.get(name, keyword) for name, keyword in dialect.VALIDATORS.items()}
    counted = {name: _counted(name, keyword) for name, keyword in keywords.items()}
    return extend(dialect, counted)  # type: ignore[no-untyped-call]


@cache
def schema_formats(dialect: Any) -> Any:
    """The formats of the dialect for checking a schema: a `regex` is one that can be used."""
    return _formats(dialect, _usable)


@cache
def value_formats(dialect: Any) -> Any:
    """The formats of the dialect for checking a value. Checks with them raise `TooMuchWork`."""
    return _formats(dialect, _is_regex)


def _formats(dialect: Any, is_regex: Callable[[Any], bool]) -> Any:
    from jsonschema import FormatChecker

    known = dialect.FORMAT_CHECKER.checkers
    checker = FormatChecker(formats=())
    checker.checkers = {name: known[name] for name in FORMATS if name in known} | {"regex": (is_regex, PatternRefused)}
    return checker


def is_known(name: str, schema: Mapping[str, Any]) -> bool:
    """True when `properties` or `patternProperties` of the schema speak of this key."""
    return name in schema.get("properties", {}) or any(search(p, name) for p in schema.get("patternProperties", {}))


def _usable(pattern: Any) -> bool:
    return not isinstance(pattern, str) or compiled(pattern) is not None


def _is_regex(value: Any) -> bool:
    """Not kept: it is data."""
    if isinstance(value, str):
        spend(REGEX_WORK * size_of(value))
        compiled.__wrapped__(value)
    return True


def _counted(name: str, keyword: Keyword) -> Keyword:
    by_square = name.startswith("unevaluated")

    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        spend(len(instance) ** 2 // 100 if by_square and isinstance(instance, (dict, list)) else 1)
        for error in keyword(validator, value, instance, schema) or ():
            spend(ERROR_WORK)
            yield error

    return counted


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not search(pattern, instance):
        yield _error("does not match")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, dict):
        spend(len(patterns) * len(instance))
        for pattern, inner in patterns.items():
            for name, value in instance.items():
                if search(pattern, name):
                    yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Any]:
    extras = [name for name in instance if not is_known(name, schema)] if isinstance(instance, dict) else []
    if isinstance(allowed, dict):
        for name in extras:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and extras:
        yield _error(f"{', '.join(extras)} unexpected")


def _unique_items(validator: Any, unique: bool, instance: Any, schema: Any) -> Iterator[Any]:
    if unique and isinstance(instance, list) and len({_identity(item) for item in instance}) < len(instance):
        yield _error("has non-unique elements")


def _enum(validator: Any, allowed: list[Any], instance: Any, schema: Any) -> Iterator[Any]:
    if _identity(instance) not in _identities(allowed):
        yield _error("is not one of them")


OWN: dict[str, Keyword] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
    "enum": _enum,
}


def _identity(value: Any) -> Any:
    """The same for what JSON Schema calls equal: 1 and 1.0, but not 1 and true. Numbers as text, which hashes well."""
    if isinstance(value, (bool, int, float)):
        whole = isinstance(value, float) and value.is_integer()
        return (type(value) is bool, str(int(value) if whole else value))
    if isinstance(value, list):
        return ("list", *map(_identity, value))
    if isinstance(value, dict):
        return frozenset((name, _identity(inner)) for name, inner in value.items())
    return value


_enums: dict[int, tuple[list[Any], frozenset[Any]]] = {}


def _identities(allowed: list[Any]) -> frozenset[Any]:
    """Kept with the list itself, so that no other one gets its `id`."""
    known = _enums.get(id(allowed))
    if known is None:
        if len(_enums) >= 256:
            _enums.clear()
        known = _enums[id(allowed)] = (allowed, frozenset(map(_identity, allowed)))
    return known[1]


def _error(message: str) -> Any:
    from jsonschema.exceptions import ValidationError

    return ValidationError(message)
