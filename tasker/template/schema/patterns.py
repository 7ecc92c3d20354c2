"""Patterns of JSON Schemas, matched in time linear in the length of the text.

Patterns are written in the dialect of JSON Schema (ECMA-262) or of Python and are translated to that of the engine.
`pydantic_core`, which contains the engine, is imported only if there is a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

MOST_REPETITIONS = 1000
"""Maximum product of nested repetition counts: for `([a-z]{1,10}-){1,50}` it is 500."""

LONGEST = 10_000
"""Maximum length of a pattern."""

MOST_WORK = 50_000_000
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
    found = compiled(pattern)
    if found.size * len(text) > MOST_WORK:
        most = MOST_WORK // found.size
        raise _refused(pattern, f"a text of {len(text)} characters is too long for it, {most} is the most")
    return found.matches(text)


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
    shown = pattern if len(pattern) <= 60 else pattern[:57] + "..."
    return PatternRefused(f"the pattern {shown} cannot be used: {reason}")


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
