"""What a handler tells while it runs: its progress, lines of its log, events."""

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
    """The part of a `StepContext` that takes what its handler tells."""

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
        """Say how far this attempt is: views, the API and events show it, with an estimate of what is left.

        Parameters: `percent` from 0 to 100, or how many of `total` are `done`; `message` says what is being done. May
        be called as often as one likes: at most once a second the latest is stored, and nothing waits for that. The
        next attempt begins with none. Counts as a sign of life where a step's checkpoints are watched.
        Raises `ValueError` for numbers that contradict each other.
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
        """Writes lines that are kept with the step: `context.log.info("charged", amount=12)`."""
        from tasker.step_handler.step_log import StepLog

        return StepLog()
