"""The thread that brings events to subscribers, as models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tasker.domain_events import InProcessDomainEventPoller as EnginePoller
from tasker.domain_events.poller import Wants
from tasker.types import InProcessDomainEvent

DomainEventCallback: TypeAlias = Callable[[InProcessDomainEvent], None]
ErrorCallback: TypeAlias = Callable[[Exception], None]


class InProcessDomainEventPoller(EnginePoller):
    """Takes events from the process's channel and brings them to everybody. One that raises stops no other."""

    def on_event(self, callback: Any, *, wants: Wants = lambda name: True) -> None:
        """Call this with every event whose name it `wants`, an `InProcessDomainEvent`."""
        super().on_event(callback, wants=wants)

    def start(self) -> None:
        """Begin, in a daemon thread. Raises `RuntimeError` when it runs already."""
        if self.is_running:
            raise RuntimeError("this poller runs already")
        super().start()

    @property
    def stats(self) -> dict[str, int]:
        """How often it looked, how many events it brought, how many were lost because too many waited."""
        found = super().stats
        return {
            "poll_count": found["poll_count"],
            "events_processed": found["events_processed"],
            "events_lagged": found["events_dropped"],
        }

    def _shown(self, event: dict[str, Any]) -> InProcessDomainEvent:
        return InProcessDomainEvent.model_validate(event)
