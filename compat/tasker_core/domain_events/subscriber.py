"""Taking part in events of this process."""

from __future__ import annotations

from typing import Any

from tasker.domain_events import BaseSubscriber as EngineSubscriber


class BaseSubscriber(EngineSubscriber):
    """Handles the events whose name fits one of its patterns (`payment.*`, `order.completed`)."""

    @property
    def subscriptions(self) -> list[str]:
        """The patterns; none before `start`."""
        return super().subscriptions if self.active else []

    def handle_event_safely(self, event: dict[str, Any]) -> None:
        """Handle one event with its hooks; nothing before `start`. Never raises."""
        if self.active:
            super().handle_event_safely(event)

    def _receive(self, event: Any) -> None:
        """The poller brings models, a subscriber handles plain data."""
        super()._receive(event if isinstance(event, dict) else event.model_dump())
