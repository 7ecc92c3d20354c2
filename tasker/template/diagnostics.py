"""Diagnostics of the compiler: one value per problem, each with its position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tasker.contracts.dataclasses import dataclass
from tasker.template.codes import Severity, severity_of


class Position(NamedTuple):
    """Part of a line; line and column count from 1."""

    line: int
    column: int
    length: int = 1


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Problem of a template: a stable code, what is wrong, where, and how to fix it."""

    code: str
    severity: Severity
    message: str
    file: str
    line: int
    column: int
    length: int = 1
    hint: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnostic as plain data."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "message": self.message,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "length": self.length,
            "hint": self.hint,
        }


class Report:
    """Collection of the diagnostics of one file; the same problem at the same position is recorded once."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._found: dict[tuple[str, Position, str], Diagnostic] = {}

    def add(self, code: str, message: str, place: Position, hint: str | None = None) -> None:
        """Record a problem; its severity follows from the code."""
        diagnostic = Diagnostic(code, severity_of(code), message, self.file, *place, hint=hint)
        self._found.setdefault((code, place, ""), diagnostic)

    def add_found(self, code: str, severity: Severity, message: str, place: Position, hint: str | None) -> None:
        """Record a plugin's finding. Its codes are its own, and it may report several findings at one position."""
        diagnostic = Diagnostic(code, severity, message, self.file, *place, hint=hint)
        self._found.setdefault((code, place, message), diagnostic)

    @property
    def errors(self) -> int:
        """Number of errors recorded so far."""
        return sum(d.severity is Severity.ERROR for d in self._found.values())

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return all diagnostics in the order of the file."""
        return tuple(sorted(self._found.values(), key=lambda d: (d.line, d.column, d.code)))


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Return a hint with the nearest known word, or None if none is near."""
    found = near(word, list(known))
    return f"did you mean `{found[0]}`?" if found else None


def near(word: str, known: Sequence[str], most: int = 1) -> list[str]:
    """Return similar known words, the nearest first."""
    from difflib import get_close_matches  # lazy import, needed only for mistakes

    return get_close_matches(word, known, n=most, cutoff=0.6)


def listed(words: Iterable[str]) -> str:
    """Format the words as code, separated by commas."""
    return ", ".join(f"`{word}`" for word in words)
