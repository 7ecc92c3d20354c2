"""Publishing events about finished steps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tasker.domain_events import BasePublisher as EnginePublisher
from tasker.domain_events import StepEventContext


class BasePublisher(EnginePublisher):
    """Turns a finished step into an event, which goes to the subscribers in this process. Override the hooks."""

    def publish(self, ctx: StepEventContext, event_name: str | None = None) -> bool:
        """Publish one event, named as the step without a name; True when it was handed on. Never raises."""
        return super().publish(ctx, event_name or ctx.step_name)

    def _metadata(self, ctx: StepEventContext) -> dict[str, Any]:
        """Who published it and when, under both names; what the step and the publisher add wins."""
        now = datetime.now(UTC).isoformat()
        usual = {
            "publisher": self.publisher_name,
            "published_at": now,
            "task_uuid": ctx.task_uuid,
            "step_uuid": ctx.step_uuid,
            "step_name": ctx.step_name,
            "namespace": ctx.namespace,
            "correlation_id": ctx.correlation_id,
            "fired_at": now,
            "fired_by": self.publisher_name,
        }
        return {**usual, **ctx.metadata, **self.additional_metadata(ctx)}


class DefaultPublisher(BasePublisher):
    """The publisher of events that name none."""

    @property
    def publisher_name(self) -> str:
        """`default`."""
        return "default"

    def transform_payload(self, ctx: StepEventContext) -> dict[str, Any]:
        """The step's result."""
        return dict(ctx.result or {})
