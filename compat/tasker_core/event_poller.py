"""Thread that polls for step events, and reports how many wait.

The worker runs its steps itself, so there are none: an application with a poller works, and its steps run nevertheless.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

from tasker.handlers.events.poller import PollingThread
from tasker_core import _tasker_core as native
from tasker_core.types import FfiStepEvent
from tasker_core.types.worker import FfiDispatchMetrics

__all__ = ["EventPoller"]

log = logging.getLogger("tasker.events")

StepEventCallback = Callable[[FfiStepEvent], None]
MetricsCallback = Callable[[FfiDispatchMetrics], None]
ErrorCallback = Callable[[Exception], None]

PAUSE_AFTER_ERROR = 10
"""Number of intervals to wait after an error."""


class EventPoller(PollingThread):
    """Poller in a daemon thread, every `polling_interval_ms`; the other intervals count polls."""

    thread_name = "tasker-event-poller"
    DEFAULT_POLL_INTERVAL_MS = 10
    DEFAULT_STARVATION_CHECK_INTERVAL = 100
    DEFAULT_CLEANUP_INTERVAL = 1000

    def __init__(
        self,
        polling_interval_ms: int = DEFAULT_POLL_INTERVAL_MS,
        starvation_check_interval: int = DEFAULT_STARVATION_CHECK_INTERVAL,
        cleanup_interval: int = DEFAULT_CLEANUP_INTERVAL,
    ) -> None:
        super().__init__(polling_interval_ms)
        self._starvation_check_interval = starvation_check_interval
        self._cleanup_interval = cleanup_interval
        self._polls = 0
        self._step_callbacks: list[StepEventCallback] = []
        self._metrics_callbacks: list[MetricsCallback] = []
        self._error_callbacks: list[ErrorCallback] = []

    def on_step_event(self, callback: StepEventCallback) -> None:
        """Call `callback` with every step event."""
        self._step_callbacks.append(callback)

    def on_metrics(self, callback: MetricsCallback) -> None:
        """Call `callback` with the metrics of waiting events, at every check."""
        self._metrics_callbacks.append(callback)

    def on_error(self, callback: ErrorCallback) -> None:
        """Call `callback` with errors of polling or of a callback."""
        self._error_callbacks.append(callback)

    def start(self) -> None:
        """Start to poll. Raises `RuntimeError` if it is polling already."""
        if self.is_running:
            raise RuntimeError("this poller runs already")
        super().start()

    def get_metrics(self) -> FfiDispatchMetrics | None:
        """Return the number of waiting step events, or None without a worker."""
        try:
            return FfiDispatchMetrics.model_validate(native.get_ffi_dispatch_metrics())
        except RuntimeError as error:
            log.debug("%s", error)
            return None

    def poll(self) -> bool:
        """Poll once; return True if there was an event."""
        self._polls += 1
        event = native.poll_step_events()
        if event is not None:
            self._tell(self._step_callbacks, FfiStepEvent.model_validate(event))
        if self._polls % self._starvation_check_interval == 0 and (metrics := self.get_metrics()) is not None:
            self._tell(self._metrics_callbacks, metrics)
        if self._polls % self._cleanup_interval == 0:
            native.cleanup_timeouts()
        return event is not None

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                pause = 0.0 if self.poll() else self._interval
            except Exception as error:
                self._report(error)
                pause = self._interval * PAUSE_AFTER_ERROR
            self._stopping.wait(pause)

    def _tell(self, callbacks: list[Any], value: Any) -> None:
        for callback in list(callbacks):
            try:
                callback(value)
            except Exception as error:
                self._report(error)

    def _report(self, error: Exception) -> None:
        for callback in list(self._error_callbacks):
            with contextlib.suppress(Exception):
                callback(error)
