"""Failures of steps, and tasks that end in error, as events of Sentry. Named `sentry`; needs the extra `sentry`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tasker.plugins.hook_arguments import AttemptEnded, TaskFinished
from tasker.plugins.hooks import hookimpl

if TYPE_CHECKING:
    from tasker.settings.table import Table
    from tasker_sentry.reporter import Reporter

__all__ = ["Sentry"]


class Sentry:
    """Plugin that sends events. `tasker_sentry.events` defines their content."""

    def __init__(self) -> None:
        self._reporter: Reporter | None = None

    @hookimpl
    def tasker_settings(self) -> type[Table]:
        """Return the settings model of `[plugins.sentry]`."""
        from tasker_sentry.table import SentryTable

        return SentryTable

    @hookimpl
    def tasker_configured(self, settings: Any) -> None:
        """Create the client. Raises `ValueError` for a missing or invalid DSN, `RuntimeError` without the SDK."""
        try:
            from tasker_sentry.reporter import Reporter
        except ModuleNotFoundError as error:
            raise RuntimeError(f"it needs {error.name!r}: pip install sentry-sdk") from None
        self._reporter = Reporter(settings)

    @hookimpl
    def tasker_attempt_ended(self, ended: AttemptEnded) -> None:
        if ended.end == "failed" and self._reporter is not None:
            self._reporter.failed(ended)

    @hookimpl
    def tasker_task_finished(self, task: TaskFinished) -> None:
        """Report a task that needs an operator."""
        if task.state == "error" and self._reporter is not None:
            self._reporter.dead(task)

    @hookimpl
    def tasker_process_stopped(self) -> None:
        if self._reporter is not None:
            self._reporter.flush()
