"""Context variables of the step that runs here, and of its reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from tasker.dataclasses import dataclass

if TYPE_CHECKING:
    from tasker.handlers.claims import Claim


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


running: ContextVar[Claim | None] = ContextVar("tasker_running_step", default=None)
"""Claim of the step whose handler runs in this context: in its task, thread or process."""

covering: ContextVar[Callable[[Any], Any] | None] = ContextVar("tasker_covering", default=None)
"""Redactor for texts and plain data of the running handler: removes the sensitive values known to its step."""
