"""Reports of a running handler: progress, log lines, events."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tasker.handlers.claims import HandlerEvents, publishing
from tasker.handlers.results import Model, shown
from tasker.logging.current_step import ProgressReport, reporter

if TYPE_CHECKING:
    from tasker.handlers.events.publisher import Condition, DeliveryMode
    from tasker.logging.step_log import StepLog


class LogContext(Model):
    """Fields that every log line about a step should carry."""

    correlation_id: str | None = None
    task_uuid: str | None = None
    step_uuid: str | None = None
    namespace: str | None = None
    operation: str | None = None


HINT = "report_progress(percent=40), report_progress(done=4, total=10) or report_progress(done=4)"
LONGEST = 500


def progress_report(
    percent: float | None, done: float | None, total: float | None, message: str | None
) -> ProgressReport:
    """Return the report of these numbers. Raises `ValueError` if they are missing, invalid or contradict each other."""
    for name, value in (("percent", percent), ("done", done), ("total", total)):
        if value is not None and not (_is_number(value) and value >= 0):
            raise ValueError(f"{name} must be a number of at least 0, got {shown(value)}: {HINT}")
    if percent is None and done is None and total is None and not message:
        raise ValueError(f"expected percent, done or a message: {HINT}")
    if percent is not None and (done is not None or total is not None):
        raise ValueError(f"percent and done or total exclude each other: {HINT}")
    if total is not None and (done is None or done > total):
        raise ValueError(f"done must be given and at most total {total!r}, got {done!r}: {HINT}")
    if percent is not None and percent > 100:
        raise ValueError(f"percent must be at most 100, got {percent!r}: {HINT}")
    return ProgressReport(_fraction(percent, done, total), done, total, _shortened(message))


def _is_number(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False


def _fraction(percent: float | None, done: float | None, total: float | None) -> float | None:
    if percent is not None:
        return percent / 100
    if done is None or not total:
        return None if total is None else 1.0
    return done / total


def _shortened(message: str | None) -> str | None:
    if message is None:
        return None
    clean = str(message).replace("\0", " ").encode(errors="replace").decode()
    return clean if len(clean) <= LONGEST else f"{clean[: LONGEST - 3]}..."


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
        from tasker.handlers.events.publisher import publish_to

        events = publishing.get() if self._events is None else self._events
        return publish_to(events, name, payload, condition, delivery_mode)

    @property
    def log(self) -> StepLog:
        """Log whose lines are stored with the step: `context.log.info("charged", amount=12)`."""
        from tasker.logging.step_log import StepLog

        return StepLog()
