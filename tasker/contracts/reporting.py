"""Log lines and progress of a running handler, reported through a context variable set around each call."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Protocol

from tasker.contracts.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogLine:
    """Log line of a handler. `at` is seconds since 1970 by its process's clock; `level` is a level of `logging`."""

    at: float
    level: int
    logger: str
    message: str
    fields: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """Progress of a handler: `fraction` from 0 to 1, or `done` of `total`. None means unknown."""

    fraction: float | None
    done: float | None = None
    total: float | None = None
    message: str | None = None


class Reporter(Protocol):
    """Receiver of the reports of one attempt, thread-safe. Its methods neither block nor raise."""

    @property
    def level(self) -> int | None:
        """Lowest level of `logging` whose lines are stored; None: no lines are stored."""
        ...

    def log(self, line: LogLine) -> None:
        """Store a line."""
        ...

    def printed(self, text: str) -> None:
        """Store text written to standard output, line by line."""
        ...

    def progress(self, report: ProgressReport) -> None:
        """Record progress; only the latest report is used."""
        ...

    def flush(self) -> None:
        """End the call and store a pending line without line end."""
        ...


reporter: ContextVar[Reporter | None] = ContextVar("tasker_reporter", default=None)
"""Reporter of the step whose handler runs in this context."""
