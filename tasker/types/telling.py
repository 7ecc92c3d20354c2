"""Reports of a running handler: progress, log lines and events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tasker.contracts.events.publishing import HandlerEvents, publishing
from tasker.contracts.reporting import reporter
from tasker.types.progress import progress_report

if TYPE_CHECKING:
    from tasker.domain_events.declaration import Condition, DeliveryMode
    from tasker.step_handler.step_log import StepLog


class ProgressReporting:
    """Part of `StepContext` that accepts reports of its handler."""

    if TYPE_CHECKING:
        _events: HandlerEvents | None

    def report_progress(
        self,
        percent: float | None = None,
        *,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
    ) -> None:
        """Report the progress of this attempt.

        Views, the API and events show it with an estimate of the remaining time. May be called at any rate: at most
        once a second the latest report is stored, and nothing waits for that. The next attempt starts without a report.
        A report counts as a sign of life for steps whose checkpoints are monitored.

        Args:
            percent: Progress from 0 to 100; alternative to `done` and `total`.
            done: Number of finished units.
            total: Number of all units.
            message: Description of the current work.

        Raises:
            ValueError: The numbers are missing, invalid or contradict each other.
        """
        report = progress_report(percent, done, total, message)
        if (to := reporter.get()) is not None:
            to.progress(report)

    def publish_domain_event(
        self,
        name: str,
        payload: Mapping[str, Any],
        *,
        condition: Condition = "success",
        delivery_mode: DeliveryMode = "durable",
    ) -> bool:
        """Publish an event of this step: `tasker.domain_events.publish_domain_event`, from any thread."""
        from tasker.domain_events.publishing import publish_to

        events = publishing.get() if self._events is None else self._events
        return publish_to(events, name, payload, condition, delivery_mode)

    @property
    def log(self) -> StepLog:
        """Log whose lines are stored with the step: `context.log.info("charged", amount=12)`."""
        from tasker.step_handler.step_log import StepLog

        return StepLog()
