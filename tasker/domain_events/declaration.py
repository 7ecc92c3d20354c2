"""Event declarations of templates, and the data that a publisher gets."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from tasker.types.model import Model

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
