"""Limits of the work that a JSON Schema and its patterns may cause.

Patterns are written in the dialect of JSON Schema (ECMA-262) or of Python and are translated to that of the engine.
`pydantic_core`, which contains the engine, is imported only if there is a pattern.

Operations that are quadratic in `jsonschema` are linear here or are charged quadratically. Schemas that refer to
themselves in several alternatives would take time exponential in the depth of a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache, lru_cache
from typing import Any, NamedTuple

MOST_REPETITIONS = 1000
"""Maximum product of nested repetition counts: for `([a-z]{1,10}-){1,50}` it is 500."""

LONGEST = 10_000
"""Maximum length of a pattern."""

MOST_PATTERN_WORK = 50_000_000
"""Maximum product of a text's length and its pattern's size: a few seconds in the worst case."""

TOKEN = re.compile(r"\\[pPux]\{[^{}]*\}|\\u[0-9A-Fa-f]{4}|\\.|\{(\d+)(?:,(\d*))?\}|.", re.DOTALL)
LITERAL = {r"\<": "<", r"\>": ">", r"\Z": r"\z", "{": r"\{"}
"""Tokens that mean something else to the engine, with their translation."""
LITERAL_IN_CLASS = {r"\<": "<", r"\>": ">", r"\b": r"\x08", "[": r"\[", "&": r"\&", "~": r"\~"}


class PatternRefused(ValueError):
    """Refusal of a pattern, in general or for a text; the message is the reason."""


class Pattern(NamedTuple):
    """Compiled pattern. `size` is its approximate number of states."""

    matches: Callable[[str], bool]
    size: int


def search(pattern: str, text: str) -> bool:
    """Return whether the pattern matches anywhere in the text. Raises `PatternRefused`."""
    matcher = compiled(pattern)
    if matcher.size * len(text) > MOST_PATTERN_WORK:
        most = MOST_PATTERN_WORK // matcher.size
        raise _refused(pattern, f"expected a text of at most {most} characters, got {len(text)}")
    return matcher.matches(text)


@lru_cache(maxsize=512)
def compiled(pattern: str) -> Pattern:
    """Compile the pattern. Raises `PatternRefused` if it is invalid or not supported in linear time."""
    from pydantic_core import SchemaError, SchemaValidator

    text, size = _read(pattern)
    try:
        validator = SchemaValidator({"type": "str", "pattern": text, "regex_engine": "rust-regex"})
    except SchemaError as error:
        reason = str(error).rsplit("error: ", 1)[-1].rsplit("SchemaError: ", 1)[-1].strip().rstrip(".")
        raise _refused(pattern, reason + _advice(reason)) from None
    return Pattern(validator.isinstance_python, size)


def size_of(pattern: str) -> int:
    """Return the `size` of a pattern without compiling it. Raises `PatternRefused`."""
    return _read(pattern)[1]


def _read(pattern: str) -> tuple[str, int]:
    """Return the pattern in the engine's dialect, and its size."""
    if len(pattern) > LONGEST:
        raise _refused(pattern, f"it has {len(pattern)} characters, and {LONGEST} is the most")
    counts = _Counts(pattern)
    text = "".join(_translated(pattern, counts))
    return text, max(1, counts.most, len(text) // 10)


def _refused(pattern: str, reason: str) -> PatternRefused:
    excerpt = pattern if len(pattern) <= 60 else pattern[:57] + "..."
    return PatternRefused(f"the pattern {excerpt} cannot be used: {reason}")


def _advice(reason: str) -> str:
    if "look-around" in reason or "backreference" in reason:
        return "; patterns are matched in linear time, which rules it out: check that in the handler"
    return ""


class _Counts:
    """Product of nested counted repetitions: 500 for `(a{1,10}){1,50}`."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._groups = [1]
        self._atom = self.most = 1

    def see(self, token: str) -> None:
        """Process a token outside of character classes that is not a counted repetition."""
        if token == "(":
            self._groups.append(1)
        elif token == ")" and len(self._groups) > 1:
            self._atom = self._groups.pop()
            self._keep()
        elif token not in "*+?":
            self._atom = 1

    def repeat(self, times: int) -> None:
        """Process a counted repetition of the last atom. Raises `PatternRefused`."""
        self._atom *= max(1, times)
        self._keep()
        if self._atom > MOST_REPETITIONS:
            reason = f"its repetitions come to {self._atom}, and {MOST_REPETITIONS} is the most"
            raise _refused(self._pattern, reason)

    def _keep(self) -> None:
        self._groups[-1] = max(self._groups[-1], self._atom)
        self.most = max(self.most, self._atom)


def _translated(pattern: str, counts: _Counts) -> Iterator[str]:
    tokens = TOKEN.finditer(pattern)
    for match in tokens:
        token = match[0]
        if match[1]:
            counts.repeat(int(match[2] or match[1]))
            yield token
            continue
        counts.see(token)
        if token == "[":
            yield from _character_class(pattern, token, tokens)
        else:
            yield LITERAL.get(token, _plain(token))


def _character_class(pattern: str, opening: str, tokens: Iterator[re.Match[str]]) -> Iterator[str]:
    yield opening
    before = opening
    for match in tokens:
        token = match[0]
        if token == "-" == before:
            raise _refused(pattern, r"write \- for a dash beside another one in [...]")
        if match[1]:  # `{3}` is four literal characters here
            yield token
        else:
            yield LITERAL_IN_CLASS.get(token, _plain(token))
        if token == "]" and before != "[" and before != "[^":
            return
        before = before + token if before + token == "[^" else token


def _plain(token: str) -> str:
    """Return the token without a backslash before a non-ASCII letter, which has no meaning."""
    return token[1] if token[0] == "\\" and len(token) == 2 and not token[1].isascii() else token


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
