"""Subscribing to events of this process."""

from __future__ import annotations

from typing import Any

from tasker.handlers.events.subscriber import BaseSubscriber as EngineSubscriber


class BaseSubscriber(EngineSubscriber):
    """Subscriber to the events whose name matches one of its patterns (`payment.*`, `order.completed`)."""

    @property
    def subscriptions(self) -> list[str]:
        """The patterns; none before `start`."""
        return super().subscriptions if self.active else []

    def handle_event_safely(self, event: dict[str, Any]) -> None:
        """Handle one event with its hooks; ignored before `start`. Never raises an error."""
        if self.active:
            super().handle_event_safely(event)

    def _receive(self, event: Any) -> None:
        """Convert the poller's model to plain data for the subscriber."""
        super()._receive(event if isinstance(event, dict) else event.model_dump())
