"""A journal of what a process does: a line of JSON for each attempt, end of a task, breaker, repair. Named `logs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tasker.hookspecs import (
    AttemptEnded,
    AttemptStarted,
    BreakerChanged,
    ClaimsHeld,
    ProcessInfo,
    Repaired,
    TaskFinished,
    hookimpl,
)

if TYPE_CHECKING:
    from tasker.contracts.settings import Table
    from tasker_logs.journal import Journal

__all__ = ["Logs"]


class Logs:
    """The plugin. What is formed of each event says `tasker_logs.lines`."""

    def __init__(self) -> None:
        self._journal: Journal | None = None
        self._starts = False

    @hookimpl
    def tasker_settings(self) -> type[Table]:
        """What `[plugins.logs]` may hold."""
        from tasker_logs.table import LogsTable

        return LogsTable

    @hookimpl
    def tasker_configured(self, settings: Any) -> None:
        """Where lines go. Raises `OSError` for a file that cannot be written."""
        from tasker_logs.journal import Journal

        self._journal, self._starts = Journal(settings.path), settings.starts

    @hookimpl
    def tasker_process_started(self, process: ProcessInfo) -> None:
        """A worker or orchestrator works."""
        self._write("Process started", process)

    @hookimpl
    def tasker_process_stopped(self, process: ProcessInfo) -> None:
        """It has ended."""
        self._write("Process stopped", process)

    @hookimpl
    def tasker_attempt_started(self, attempt: AttemptStarted) -> None:
        """A line where these are asked for: there are as many as attempts."""
        if self._starts:
            self._write("Step started", attempt)

    @hookimpl
    def tasker_attempt_ended(self, ended: AttemptEnded) -> None:
        """How it ended, how long it took, and what was wrong."""
        self._write(f"Step {ended.end}", ended)

    @hookimpl
    def tasker_task_finished(self, task: TaskFinished) -> None:
        """A task is over."""
        self._write("Task finished", task)

    @hookimpl
    def tasker_breaker_changed(self, breaker: BreakerChanged) -> None:
        """A circuit breaker went from one state to another."""
        self._write("Circuit breaker changed", breaker)

    @hookimpl
    def tasker_claims_held(self, claims: ClaimsHeld) -> None:
        """The process takes on less, or goes on."""
        self._write("Claims held", claims)

    @hookimpl
    def tasker_repaired(self, repaired: Repaired) -> None:
        """A sweep has repaired something."""
        self._write("Repaired", repaired)

    def _write(self, message: str, value: Any) -> None:
        from tasker_logs.lines import line

        if self._journal is not None:
            self._journal.write(line(message, value))
