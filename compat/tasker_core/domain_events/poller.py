"""Thread that delivers events to subscribers, as models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tasker.handlers.events.poller import InProcessDomainEventPoller as EnginePoller
from tasker.handlers.events.poller import Wants
from tasker.handlers.events.publisher import InProcessDomainEvent

DomainEventCallback: TypeAlias = Callable[[InProcessDomainEvent], None]
ErrorCallback: TypeAlias = Callable[[Exception], None]


class InProcessDomainEventPoller(EnginePoller):
    """Poller that delivers events of the process's channel to all callbacks. An error in one does not affect others."""

    def on_event(self, callback: Any, *, wants: Wants = lambda name: True) -> None:
        """Call `callback` with every event whose name it `wants`, an `InProcessDomainEvent`."""
        super().on_event(callback, wants=wants)

    def start(self) -> None:
        """Start the daemon thread. Raises `RuntimeError` if it is running already."""
        if self.is_running:
            raise RuntimeError("this poller runs already")
        super().start()

    @property
    def stats(self) -> dict[str, int]:
        """Number of polls, of events delivered, and of events dropped because too many waited."""
        counts = super().stats
        return {
            "poll_count": counts["poll_count"],
            "events_processed": counts["events_processed"],
            "events_lagged": counts["events_dropped"],
        }

    def _shown(self, event: dict[str, Any]) -> InProcessDomainEvent:
        return InProcessDomainEvent.model_validate(event)
