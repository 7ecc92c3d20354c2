"""Declaration and publication of domain events."""

from __future__ import annotations

import logging
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, get_args
from uuid import UUID

from pydantic import ConfigDict, Field

from tasker.errors import ValidationError
from tasker.handlers.claims import HandlerEvents, publishing
from tasker.handlers.events.poller import shared
from tasker.handlers.results import Model
from tasker.template.names import MAX_NAME, NAME, NAME_RULE

Condition = Literal["success", "failure", "retryable_failure", "permanent_failure", "always"]
DeliveryMode = Literal["durable", "fast", "broadcast"]


class EventDeclaration(Model):
    """Entry of a template's `publishes_events`."""

    model_config = ConfigDict(populate_by_name=True)

    name: str
    condition: Condition | None = None
    delivery_mode: DeliveryMode | None = None
    publisher: str | None = None
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")

    @property
    def schema(self) -> dict[str, Any] | None:  # type: ignore[override]
        """JSON Schema of the payload."""
        return self.schema_


class StepResult(Model):
    """Result that an event reports."""

    success: bool
    result: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


class StepEventContext(Model):
    """Step that an event is about; `result` holds the handler's own keys.

    A publisher also gets the template's declaration of the event, the outcome of the attempt with the handler's
    metadata, and the context of the handler call: `step_context` is a `StepContext`.
    """

    task_uuid: str
    step_uuid: str
    step_name: str
    namespace: str
    correlation_id: str
    result: dict[str, Any] | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    declaration: EventDeclaration | None = Field(default=None, exclude=True, repr=False)
    step_result: StepResult | None = Field(default=None, exclude=True, repr=False)
    step_context: Any = Field(default=None, exclude=True, repr=False)

    @classmethod
    def from_step_context(
        cls, step_context: Any, result: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None
    ) -> StepEventContext:
        """Return the context of an event about the step of a handler call."""
        return cls(
            task_uuid=str(step_context.task_uuid),
            step_uuid=str(step_context.step_uuid),
            step_name=step_context.step_name,
            namespace=step_context.namespace,
            correlation_id=str(step_context.correlation_id),
            result=result,
            metadata=metadata or {},
        )


class PublishContext(Model):
    """Event that is about to be published."""

    event_name: str
    step_result: StepResult
    event_declaration: EventDeclaration | None = None
    step_context: StepEventContext | None = None


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


def publish_domain_event(
    name: str,
    payload: Mapping[str, Any],
    *,
    condition: Condition = "success",
    delivery_mode: DeliveryMode = "durable",
) -> bool:
    """Publish an event of the step whose handler is running, which its template need not declare.

    The event is deferred until the step's result is accepted and is written together with it, after the events that the
    template declares and in the order of the calls. If the result is rejected or lost, or its outcome does not match
    `condition`, nothing is published. `payload` is a JSON mapping whose current state is used; the events of one result
    are limited to 100 and 1 MiB in total. `delivery_mode` is `durable`, `fast` or `broadcast`; `condition` takes the
    values of `publishes_events`.

    Returns False if the event will not be published because its payload is not JSON or too large, or because no handler
    is running here. The reason is logged and listed by `tasker events list --withheld`; the step continues. Raises
    `ValidationError` for an invalid name, condition or mode.
    """
    return publish_to(publishing.get(), name, payload, condition, delivery_mode)


def publish_to(
    events: HandlerEvents | None, name: object, payload: Mapping[str, Any], condition: str, delivery_mode: str
) -> bool:
    """Add an event to those of a handler call. Raises `ValidationError` for an invalid name, condition or mode."""
    if not isinstance(name, str) or len(name) > MAX_NAME or not re.fullmatch(NAME, name):
        raise ValidationError(f"{name!r:.60} is no name of an event: {NAME_RULE}, at most {MAX_NAME} characters")
    _one_of("condition", condition, get_args(Condition))
    _one_of("delivery_mode", delivery_mode, get_args(DeliveryMode))
    if events is not None:
        return events.publish(name, payload, condition, delivery_mode)
    text = "Failed to publish domain event - step will continue event_name=%s error=%s"
    log.warning(text, name, "no handler is running here; in a thread of your own call context.publish_domain_event")
    return False


def _one_of(what: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValidationError(f"{value!r:.60} is no {what} of an event; there are {', '.join(known)}")


class DomainEventMetadata(Model):
    """Origin of an event; `fired_at` is ISO 8601 in UTC."""

    task_uuid: UUID
    step_uuid: UUID | None = None
    step_name: str | None = None
    namespace: str | None = None
    correlation_id: UUID
    fired_at: str
    fired_by: str


class ExecutionResult(Model):
    """Execution that an event reports."""

    success: bool
    result: dict[str, Any] | None = None
    error_message: str | None = None
    error_type: str | None = None
    execution_time_ms: int | None = None


class InProcessDomainEvent(Model):
    """Event delivered inside the process (modes `fast` and `broadcast`)."""

    event_id: UUID
    event_name: str
    event_version: str
    metadata: DomainEventMetadata
    payload: dict[str, Any] = Field(default_factory=dict)
    execution_result: ExecutionResult | None = None
