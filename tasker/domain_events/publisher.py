"""Publishers of events about finished steps."""

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
    """Builds an event from a finished step. Override the hooks; `publish` calls them.

    `deliver` passes the event on and returns whether it was accepted; by default the subscribers in this process get
    it.
    """

    deliver: Callable[[dict[str, Any]], bool] = staticmethod(shared.send)

    @property
    @abstractmethod
    def publisher_name(self) -> str:
        """Name by which a template refers to the publisher (`publisher`)."""

    def should_publish(self, ctx: StepEventContext) -> bool:
        """Return False to publish nothing for this step."""
        return True

    def transform_payload(self, ctx: StepEventContext) -> dict[str, Any]:
        """Return the event's payload; by default the step's result."""
        return dict(ctx.result or {})

    def additional_metadata(self, ctx: StepEventContext) -> dict[str, Any]:
        """Return additional metadata."""
        return {}

    def before_publish(self, event_name: str, payload: dict[str, Any], metadata: dict[str, Any]) -> bool:
        """Return False to stop an event before its delivery."""
        return True

    def after_publish(  # noqa: B027 (an optional hook)
        self, event_name: str, payload: dict[str, Any], metadata: dict[str, Any]
    ) -> None:
        """Observe that an event was delivered."""

    def on_publish_error(self, event_name: str, error: Exception, payload: dict[str, Any]) -> None:
        """Handle a failure of a hook or the delivery; logs it by default."""
        log.error("publishing %s failed", event_name, exc_info=error)

    def publish(self, ctx: StepEventContext, event_name: str | None = None) -> bool:
        """Publish one event (`<namespace>.<step>` without a name); return True if it was delivered. Never raises."""
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
        """Return the fields that identify the step, the publisher and the time of the event."""
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
    """Publisher of events that name no publisher."""

    @property
    def publisher_name(self) -> str:
        """Name of the publisher: `default`."""
        return "default"
