"""Publishing of events about finished steps."""

from __future__ import annotations

from typing import Any

from tasker.handlers.events.publisher import BasePublisher as EnginePublisher
from tasker.handlers.events.publisher import DefaultPublisher as EngineDefault
from tasker.handlers.events.publisher import StepEventContext


class BasePublisher(EnginePublisher):
    """Publisher of an event for a finished step, to the subscribers in this process. Override the hooks."""

    def publish(self, ctx: StepEventContext, event_name: str | None = None) -> bool:
        """Publish one event, by default named as the step; return True if it was delivered. Never raises an error."""
        return super().publish(ctx, event_name or ctx.step_name)

    def _metadata(self, ctx: StepEventContext) -> dict[str, Any]:
        """Return publisher and time, under both names; metadata of the step and the publisher take precedence."""
        origin = self._origin(ctx)
        both = {"publisher": origin["fired_by"], "published_at": origin["fired_at"]}
        return {**both, **origin, **ctx.metadata, **self.additional_metadata(ctx)}


class DefaultPublisher(EngineDefault, BasePublisher):
    """Publisher of events that name none."""
