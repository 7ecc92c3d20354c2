"""The thread that brings events to subscribers, as models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pydantic import ValidationError

from tasker.domain_events import InProcessDomainEventPoller as EnginePoller
from tasker.types import InProcessDomainEvent

DomainEventCallback: TypeAlias = Callable[[InProcessDomainEvent], None]
ErrorCallback: TypeAlias = Callable[[Exception], None]


class InProcessDomainEventPoller(EnginePoller):
    """Takes events from the process's channel and calls everyone in turn. One that raises does not stop the others."""

    def on_event(self, callback: Any) -> None:
        """Call this with every event, an `InProcessDomainEvent`."""
        super().on_event(callback)

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

    def _deliver(self, event: Any) -> None:
        try:
            model: Any = InProcessDomainEvent.model_validate(event)
        except ValidationError as error:
            self._report(error)
        else:
            super()._deliver(model)
