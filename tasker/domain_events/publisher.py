"""Publishing events about finished steps."""

from __future__ import annotations

import logging
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tasker.domain_events.channel import shared
from tasker.domain_events.declaration import StepEventContext

log = logging.getLogger("tasker.domain_events")


class BasePublisher(ABC):
    """Turns a finished step into an event. Override the hooks; `publish` drives them.

    `deliver` hands the event on and says whether it was taken; by default it goes to the subscribers in this process.
    """

    deliver: Callable[[dict[str, Any]], bool] = staticmethod(shared.send)

    @property
    @abstractmethod
    def publisher_name(self) -> str:
        """What a template writes under `publisher`."""

    def should_publish(self, ctx: StepEventContext) -> bool:
        """False to leave this step out."""
        return True

    def transform_payload(self, ctx: StepEventContext) -> dict[str, Any]:
        """The event's payload; the step's result unless overridden."""
        return dict(ctx.result or {})

    def additional_metadata(self, ctx: StepEventContext) -> dict[str, Any]:
        """Metadata beyond the usual."""
        return {}

    def before_publish(self, event_name: str, payload: dict[str, Any], metadata: dict[str, Any]) -> bool:
        """Called before the event is handed on; False stops it."""
        return True

    def after_publish(  # noqa: B027 (an optional hook)
        self, event_name: str, payload: dict[str, Any], metadata: dict[str, Any]
    ) -> None:
        """Called after the event was handed on."""

    def on_publish_error(self, event_name: str, error: Exception, payload: dict[str, Any]) -> None:
        """Called when a hook or the delivery failed; logs unless overridden."""
        log.error("publishing %s failed", event_name, exc_info=error)

    def publish(self, ctx: StepEventContext, event_name: str | None = None) -> bool:
        """Publish one event (`<namespace>.<step>` without a name); True when it was handed on. Never raises."""
        name = event_name or f"{ctx.namespace}.{ctx.step_name}"
        payload: dict[str, Any] = {}
        try:
            if not self.should_publish(ctx):
                return False
            payload = self.transform_payload(ctx)
            return self._hand_on(name, payload, self._metadata(ctx))
        except Exception as error:
            self.on_publish_error(name, error, payload)
            return False

    def _hand_on(self, name: str, payload: dict[str, Any], metadata: dict[str, Any]) -> bool:
        if not self.before_publish(name, payload, metadata):
            return False
        event = {
            "event_id": str(uuid.uuid4()),
            "event_name": name,
            "event_version": "1.0",
            "metadata": metadata,
            "payload": payload,
        }
        taken = self.deliver(event)
        if taken:
            self.after_publish(name, payload, metadata)
        return taken

    def _metadata(self, ctx: StepEventContext) -> dict[str, Any]:
        return {**ctx.metadata, **self.additional_metadata(ctx), **self._origin(ctx)}

    def _origin(self, ctx: StepEventContext) -> dict[str, Any]:
        """Which step it is about, who published it, and when."""
        return {
            "task_uuid": ctx.task_uuid,
            "step_uuid": ctx.step_uuid,
            "step_name": ctx.step_name,
            "namespace": ctx.namespace,
            "correlation_id": ctx.correlation_id,
            "fired_at": datetime.now(UTC).isoformat(),
            "fired_by": self.publisher_name,
        }


class DefaultPublisher(BasePublisher):
    """The publisher of events that name none."""

    @property
    def publisher_name(self) -> str:
        """`default`."""
        return "default"
