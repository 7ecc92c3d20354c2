"""Dialects of JSON Schema with patterns in linear time and a bound on the work of one check.

Operations that are quadratic in `jsonschema` are linear here or are charged quadratically. Schemas that refer to
themselves in several alternatives would take time exponential in the depth of a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any

from tasker.template.schema.patterns import PatternRefused, compiled, search, size_of

MOST_WORK = 10_000_000
"""Maximum number of keywords that one check applies, each about a microsecond."""

ERROR_WORK = 20
"""Cost of an error, reported or inside an alternative: its message contains the value as text."""

REGEX_WORK = 250
"""Cost of compiling a pattern per state: a class of Unicode's letters in the worst case."""

FORMATS = ("date", "email", "idn-email", "ip-address", "ipv4", "ipv6", "time", "uuid")
"""Formats that `jsonschema` checks in linear time on its own. Other formats are checked only if some package is
installed, with that package's patterns, so processes would disagree.
"""

Keyword = Callable[[Any, Any, Any, Any], Iterator[Any] | None]


class TooMuchWork(Exception):
    """Check that was aborted because it took too many steps."""

    def __init__(self, most: int) -> None:
        super().__init__(f"checking this value takes more than {most} steps")


class _Work:
    def __init__(self, most: int) -> None:
        self.most = self.left = most


_work: ContextVar[_Work] = ContextVar("work")


def begin(most: int) -> None:
    """Start a check that may take at most this many steps."""
    _work.set(_Work(most))


def spend(steps: int) -> None:
    """Charge steps to the check. Raises `TooMuchWork` if none are left."""
    work = _work.get()
    work.left -= steps
    if work.left < 0:
        raise TooMuchWork(work.most)


@cache
def bounded(dialect: Any) -> Any:
    """Return the dialect with bounded keywords. Its checks raise `PatternRefused` and `TooMuchWork`."""
    from jsonschema.validators import extend

    keywords = {name: OWN.get(name, keyword) for name, keyword in dialect.VALIDATORS.items()}
    counted = {name: _counted(name, keyword) for name, keyword in keywords.items()}
    return extend(dialect, counted)  # type: ignore[no-untyped-call]


@cache
def schema_formats(dialect: Any) -> Any:
    """Return the dialect's formats for checking a schema: a `regex` must be usable."""
    return _formats(dialect, _usable)


@cache
def value_formats(dialect: Any) -> Any:
    """Return the dialect's formats for checking a value. Its checks raise `TooMuchWork`."""
    return _formats(dialect, _is_regex)


def _formats(dialect: Any, is_regex: Callable[[Any], bool]) -> Any:
    from jsonschema import FormatChecker

    known = dialect.FORMAT_CHECKER.checkers
    checker = FormatChecker(formats=())
    checker.checkers = {name: known[name] for name in FORMATS if name in known} | {"regex": (is_regex, PatternRefused)}
    return checker


def is_known(name: str, schema: Mapping[str, Any]) -> bool:
    """Return whether `properties` or `patternProperties` of the schema match this key."""
    return name in schema.get("properties", {}) or any(search(p, name) for p in schema.get("patternProperties", {}))


def _usable(pattern: Any) -> bool:
    return not isinstance(pattern, str) or compiled(pattern) is not None


def _is_regex(value: Any) -> bool:
    """Check a pattern without caching it, since it is data."""
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
    """Return a key that is equal for values that JSON Schema calls equal: 1 and 1.0, but not 1 and true.

    Numbers become text, which hashes well.
    """
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
    """Return the cached identities of an `enum`. The cache holds the list itself, so that its `id` is not reused."""
    known = _enums.get(id(allowed))
    if known is None:
        if len(_enums) >= 256:
            _enums.clear()
        known = _enums[id(allowed)] = (allowed, frozenset(map(_identity, allowed)))
    return known[1]


def _error(message: str) -> Any:
    from jsonschema.exceptions import ValidationError

    return ValidationError(message)
