"""What a handler says while it runs, and where it goes: set around each call of a handler, as `running` is."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Protocol

from tasker.contracts.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a handler. `at` is seconds since 1970, by the clock of its process; `level` a level of `logging`."""

    at: float
    level: int
    logger: str
    message: str
    fields: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """How far a handler is: `fraction` from 0 to 1, of `total` so many are `done`. What it does not know is None."""

    fraction: float | None
    done: float | None = None
    total: float | None = None
    message: str | None = None


class Reporter(Protocol):
    """Takes what one attempt says, from any thread. Nothing of it is waited for, and nothing raises."""

    @property
    def level(self) -> int | None:
        """From which level of `logging` on lines are kept; None: none are."""
        ...

    def log(self, line: LogLine) -> None:
        """Keep a line."""
        ...

    def printed(self, text: str) -> None:
        """Keep what was written to standard output, line by line."""
        ...

    def progress(self, report: ProgressReport) -> None:
        """Note how far it is; only the latest counts."""
        ...

    def flush(self) -> None:
        """The call is over: a line that was not ended is one, too."""
        ...


reporter: ContextVar[Reporter | None] = ContextVar("tasker_reporter", default=None)
"""Of the step whose handler is running in this context."""
