"""Publishing events about finished steps."""

from __future__ import annotations

from typing import Any

from tasker.domain_events import BasePublisher as EnginePublisher
from tasker.domain_events import DefaultPublisher as EngineDefault
from tasker.domain_events import StepEventContext


class BasePublisher(EnginePublisher):
    """Turns a finished step into an event, which goes to the subscribers in this process. Override the hooks."""

    def publish(self, ctx: StepEventContext, event_name: str | None = None) -> bool:
        """Publish one event, named as the step without a name; True when it was handed on. Never raises."""
        return super().publish(ctx, event_name or ctx.step_name)

    def _metadata(self, ctx: StepEventContext) -> dict[str, Any]:
        """Who published it and when, under both names; what the step and the publisher add wins."""
        origin = self._origin(ctx)
        both = {"publisher": origin["fired_by"], "published_at": origin["fired_at"]}
        return {**both, **origin, **ctx.metadata, **self.additional_metadata(ctx)}


class DefaultPublisher(EngineDefault, BasePublisher):
    """The publisher of events that name none."""
