"""Schemas of tasks."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tasker.errors import UsageError
from tasker.logging.trace_context import TraceContext
from tasker.server.shapes.steps import StepReadinessStatus
from tasker.server.shapes.texts import AwareMoment, Deadline, Duration, Moment, Name, Priority, Tenant, Text
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import OnDuplicate, Submission

MOST_ORDERS = 1000
ON_DUPLICATE: dict[str, OnDuplicate] = {"refuse": "refuse", "return_existing": "return"}


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
        None, description="Workers claim steps of higher ones first. Without one, that of the template, usually normal."
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
    tenant: Tenant | None = Field(None, description="For whom the task runs.")
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

    on_duplicate: Literal["refuse", "return_existing"] = Field(
        "refuse", description="Answer with the existing task of that identity, in place of 409."
    )


class QueuedRequest(DescribedTask):
    """Task requested from an orchestrator. The template is `name` or `template_name`."""

    task_uuid: UUID | None = Field(None, description="Of a request whose answer was lost: it stays one task.")


class TaskRequested(BaseModel):
    """Identifier that the task will have; `status` is `requested`."""

    task_uuid: str
    status: Literal["requested"] = "requested"


def _text(value: UUID | None) -> str | None:
    return None if value is None else str(value)


class TaskBatch(BaseModel):
    """Tasks to create, each with its own answer."""

    model_config = ConfigDict(extra="forbid")

    tasks: list[TaskRequest] = Field(min_length=1, max_length=MOST_ORDERS)
    on_duplicate: Literal["refuse", "return_existing"] = "refuse"


class TaskResponse(BaseModel):
    """Task with its progress; lists omit the steps. Times are ISO 8601 in UTC."""

    task_uuid: str
    name: str
    namespace: str
    version: str
    status: str
    current_state: str
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None = None
    duration_ms: int | None = None
    context: Any
    initiator: str
    source_system: str
    reason: str
    priority: int | None = None
    tags: list[str] | None = None
    correlation_id: UUID
    parent_correlation_id: UUID | None = None
    tenant: str | None = None
    """For whom the task runs."""
    run_at: datetime | None = None
    """Time for which the task was submitted; null if it began at once."""
    expires_at: datetime | None = None
    """Time at which the task is cancelled if no worker has begun it; null if it never is, or has ended."""
    deadline_at: datetime | None = None
    """Time at which the open steps of the task fail; null without a deadline."""
    waits_until: datetime | None = None
    """Time at which the task continues on its own, while all of it waits: for its start, a delay or a retry."""
    total_steps: int
    pending_steps: int
    in_progress_steps: int
    completed_steps: int
    failed_steps: int
    ready_steps: int
    execution_status: str
    recommended_action: str
    completion_percentage: float
    health_status: str
    steps: list[StepReadinessStatus]
    more_steps: int | None = None
    """Number of steps after those in `steps`; null if the task is shown without steps."""


class TaskCreated(TaskResponse):
    """Created task, or the existing one that the request asked for (`created` is false).

    `unique`: the existing one runs under the same unique key of its template.
    """

    step_count: int
    message: str
    created: bool
    unique: bool = False


class TaskCancelled(TaskResponse):
    """Cancelled task and its previous state."""

    previous_status: str


class BatchAnswer(BaseModel):
    """Result for one task of a batch: a task or a problem."""

    index: int
    status: int
    task_uuid: str | None = None
    step_count: int | None = None
    created: bool | None = None
    unique: bool | None = None
    problem: dict[str, Any] | None = None


class BatchResponse(BaseModel):
    """Results in the order of the request."""

    results: list[BatchAnswer]
    created: int
    existing: int
    refused: int


class PaginationInfo(BaseModel):
    """Position of a page. Pages count from 0; requests with a `cursor` return no counts.

    `total_is_minimum`: there may be more than `total_count`.
    """

    per_page: int
    has_next: bool
    page: int | None = None
    total_count: int | None = None
    total_is_minimum: bool | None = None
    total_pages: int | None = None
    has_previous: bool | None = None
    next_cursor: str | None = None


class TaskListResponse(BaseModel):
    """Page of tasks without their steps."""

    tasks: list[TaskResponse]
    pagination: PaginationInfo


class TaskContextResponse(BaseModel):
    """Input of a task and its progress."""

    task_uuid: str
    named_task_uuid: str
    status: str
    execution_status: str
    recommended_action: str | None
    health_status: str
    completion_percentage: str
    total_steps: int
    pending_steps: int
    in_progress_steps: int
    completed_steps: int
    failed_steps: int
    ready_steps: int
    enqueued_steps: int
    context: Any


class StepDetails(BaseModel):
    """Step of a task with its result."""

    step_uuid: str
    name: str
    current_state: str
    attempts: int
    result: Any
    error: dict[str, Any] | None
    duration_ms: int | None


class Transition(BaseModel):
    """State change of a step, or of the task if `step` is null."""

    step: str | None
    from_state: str | None
    to_state: str
    timestamp: datetime


class TaskDetailsResponse(BaseModel):
    """Task with the results of its steps and its complete history."""

    task: TaskResponse
    steps: list[StepDetails]
    state_transitions: list[Transition]
    step_transitions: list[Transition]
