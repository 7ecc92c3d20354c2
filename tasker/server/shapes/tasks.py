"""Schemas of tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tasker.errors import UsageError
from tasker.logging.trace_context import TraceContext
from tasker.operations.tasks import ON_DUPLICATE as WORDS
from tasker.operations.tasks import OnDuplicate
from tasker.server.shapes.texts import AwareMoment, Deadline, Duration, Moment, Name, Priority, Tenant, Text
from tasker.services.submission.parents import ParentStep
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission

MOST_ORDERS = 1000
ON_DUPLICATE: dict[str, OnDuplicate] = {published: word for word, published in WORDS.items()}


class ParentOfTask(BaseModel):
    """Step whose handler creates a task."""

    model_config = ConfigDict(extra="forbid")

    step_uuid: UUID
    token: int | None = Field(None, ge=0, le=2**62, description="Fencing token of its claim.")


class DescribedTask(BaseModel):
    """Description of a task to create. The template is `name` or `template_name`, its input `context` or
    `configuration`."""

    model_config = ConfigDict(extra="forbid")

    name: Name | None = Field(None, description="The template.")
    template_name: Name | None = Field(None, description="The same as `name`.")
    namespace: Name = "default"
    version: Name | None = Field(None, description="Without one the version that was registered last.")
    context: Any = Field(None, description="The input: an object that fits the template's `input_schema`.")
    configuration: Any = Field(None, description="The same as `context`.")
    priority: Priority | None = Field(
        None,
        description="Steps of tasks with a higher priority are claimed first. Default: the priority of the template.",
    )
    idempotency_key: Name | None = Field(None, description="Tasks of one template and key are one task.")
    correlation_id: UUID | None = None
    parent_correlation_id: UUID | None = None
    initiator: Text = "unknown"
    source_system: Text = "unknown"
    reason: Text = ""
    tags: list[Name] = Field([], max_length=100)
    run_at: AwareMoment | None = Field(None, description="The task begins then; a time with a zone.")
    delay: Duration | None = Field(None, description="The task begins so long after its creation: 90s, 5m, 36h, 3d.")
    expires_in: Duration | None = Field(
        None, description="The task is cancelled if no worker has begun it so long after its start."
    )
    deadline: Deadline | None = Field(
        None, description="The open steps of the task fail then: a time with a zone, or a duration from its start."
    )
    tenant: Tenant | None = Field(None, description="Tenant (customer, team or account) of the task.")
    callback_url: Text | None = Field(None, description="URL to which the end of the task is posted, signed.")
    requested_at: Moment | None = Field(None, description="Taken and not kept: the server's clock counts.")
    options: dict[str, Any] | None = Field(None, max_length=0, description="Has no meaning yet, so only `{}` is taken.")

    @model_validator(mode="after")
    def _has_one_name(self) -> Self:
        if (self.name is None) == (self.template_name is None):
            raise ValueError("give the template as `name` or as `template_name`")
        if self.context is not None and self.configuration is not None:
            raise ValueError("give the input as `context` or as `configuration`")
        if self.run_at is not None and self.delay is not None:
            raise ValueError("give the start as `run_at` or as `delay`")
        if not isinstance(self.input, dict):
            raise ValueError("the input must be an object")
        return self

    @property
    def template(self) -> str:
        """Name of the template."""
        return self.name or self.template_name or ""

    @property
    def input(self) -> Any:
        """Input of the task."""
        value = self.context if self.context is not None else self.configuration
        return {} if value is None else value

    def order(
        self, caller: str | None = None, trace: TraceContext | None = None, idempotency_key: str | None = None
    ) -> TemplateSubmission:
        """Return the request in the form of the services; an authenticated `caller` is the default initiator.

        `idempotency_key` is that of the request's header. Raises `UsageError` if the body has another one.
        """
        if idempotency_key is not None and self.idempotency_key not in (None, idempotency_key):
            raise UsageError(
                "the header Idempotency-Key and the body's idempotency_key differ",
                hint="send one of them, or the same text in both",
            )
        request = Submission(
            self.input,
            priority=self.priority,
            idempotency_key=self.idempotency_key if idempotency_key is None else idempotency_key,
            correlation_id=_text(self.correlation_id),
            parent_correlation_id=_text(self.parent_correlation_id),
            initiator=caller if caller and "initiator" not in self.model_fields_set else self.initiator,
            source_system=self.source_system,
            reason=self.reason,
            tags=self.tags,
            traceparent=trace.traceparent if trace else None,
            tracestate=trace.tracestate if trace else None,
            run_at=self.run_at,
            delay=self.delay,
            expires_in=self.expires_in,
            deadline=self.deadline,
            tenant=self.tenant,
            callback_url=self.callback_url,
        )
        return TemplateSubmission(self.namespace, self.template, self.version, request)


class TaskRequest(DescribedTask):
    """Task to create. The template is `name` or `template_name`, its input `context` or `configuration`."""

    parent: ParentOfTask | None = Field(
        None, description="The task is a child of this step: a repeated request answers with the same task."
    )
    key: Name | None = Field(None, description="With `parent`: identifies the task among those of the step.")

    on_duplicate: Literal["refuse", "return_existing"] = Field(
        "refuse", description="Answer with the existing task of that identity, in place of 409."
    )

    def order(
        self, caller: str | None = None, trace: TraceContext | None = None, idempotency_key: str | None = None
    ) -> TemplateSubmission:
        """Return the request in the form of the services, with its parent; see `DescribedTask.order`."""
        order = super().order(caller, trace, idempotency_key)
        parent = None if self.parent is None else ParentStep(str(self.parent.step_uuid), self.parent.token)
        return replace(order, request=replace(order.request, parent=parent, key=self.key))


class QueuedRequest(DescribedTask):
    """Task requested from an orchestrator. The template is `name` or `template_name`."""

    task_uuid: UUID | None = Field(None, description="Of a request whose answer was lost: it stays one task.")


def _text(value: UUID | None) -> str | None:
    return None if value is None else str(value)


class TaskBatch(BaseModel):
    """Tasks to create, each with its own answer."""

    model_config = ConfigDict(extra="forbid")

    tasks: list[TaskRequest] = Field(min_length=1, max_length=MOST_ORDERS)
    on_duplicate: Literal["refuse", "return_existing"] = "refuse"


class BatchAnswer(BaseModel):
    """Result for one task of a batch: a task or a problem."""

    index: int
    status: int
    task_uuid: str | None = None
    step_count: int | None = None
    created: bool | None = None
    unique: bool | None = None
    debounced: bool | None = None
    problem: dict[str, Any] | None = None


class BatchResponse(BaseModel):
    """Results in the order of the request."""

    results: list[BatchAnswer]
    created: int
    existing: int
    refused: int
