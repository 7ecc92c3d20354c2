"""Context of a handler in the form of tasker_core: created from the event form of a step."""

from __future__ import annotations

from typing import Any, Self
from uuid import UUID

from tasker.handlers.context import StepContext as EngineContext
from tasker.handlers.dependency_results import unwrap_all
from tasker.handlers.readable import yes_or_no
from tasker.template.names import MAX_ATTEMPTS
from tasker_core.models import TaskSequenceStepWrapper, TaskWrapper
from tasker_core.types.step_event import FfiStepEvent, event_for, task_fields


class EventContext(EngineContext):
    """The engine's context of a step that arrived as an event: handlers written for the engine get it."""

    event: FfiStepEvent  # type: ignore[assignment]  # tasker_core's name; that of `again_when` is `awaited_event`

    @classmethod
    def from_ffi_event(cls, event: FfiStepEvent, handler_name: str) -> Self:
        """Create the context from the event form of a step."""
        data = event.task_sequence_step
        step = data.get("workflow_step") or {}
        handler = (data.get("step_definition") or {}).get("handler") or {}
        task_input, inputs = task_fields(data).get("context") or {}, step.get("handler_inputs")
        made = cls(
            event=event,
            task_uuid=UUID(event.task_uuid),
            step_uuid=UUID(event.step_uuid),
            correlation_id=UUID(event.correlation_id),
            handler_name=handler_name,
            input_data=task_input if inputs is None else inputs,
            dependency_results=unwrap_all(data.get("dependency_results")),
            step_config=handler.get("initialization") or {},
            step_inputs=step.get("inputs") or {},
            retry_count=step.get("attempts") or 0,
            max_retries=MAX_ATTEMPTS if step.get("max_attempts") is None else step["max_attempts"],
        )
        made._task_input = None if inputs is None else task_input
        return made

    @property
    def step_name(self) -> str:
        """Name of this step instance."""
        return super().step_name if self._claim is not None else str(self._workflow_step.get("name") or "")

    @property
    def namespace(self) -> str:
        """Namespace of the task's template."""
        if self._template is not None:
            return super().namespace
        return str(task_fields(self.event.task_sequence_step).get("namespace_name") or "")

    @property
    def checkpoint(self) -> dict[str, Any] | None:
        """Data that the last `checkpoint_yield` of this step stored; None without one."""
        if self._claim is not None:
            return super().checkpoint
        stored = self._workflow_step.get("checkpoint")
        return dict(stored) if stored else None

    @property
    def task_sequence_step(self) -> TaskSequenceStepWrapper:
        """Task, step, dependency results and definition as wrapped objects."""
        return TaskSequenceStepWrapper.from_dict(self.event.task_sequence_step)

    @property
    def task(self) -> TaskWrapper:
        """Task of the step, with `.context`."""
        return self.task_sequence_step.task

    @property
    def _workflow_step(self) -> dict[str, Any]:
        return self.event.task_sequence_step.get("workflow_step") or {}


class StepContext(EventContext):
    """The context of tasker_core's handlers.

    `dependency_results` contains envelopes (`{"result": ...}`), which `get_dependency_result` opens once. Additions of
    the engine, such as `cancelled`, are available as well.
    """

    @classmethod
    def from_ffi_event(cls, event: FfiStepEvent, handler_name: str) -> Self:
        """Create the context from the event form of a step."""
        made = super().from_ffi_event(event, handler_name)
        made.dependency_results = event.task_sequence_step.get("dependency_results") or {}
        made.max_retries = made.max_retries or 3
        return made

    @classmethod
    def from_engine(cls, context: EngineContext) -> Self:
        """Create the context from the engine's context."""
        made = cls.from_ffi_event(event_of(context), context.handler_name)
        made._claim, made._template = context._claim, context._template
        made._step, made._cancel_flag = context._step, context._cancel_flag
        return made

    def get_dependency_result(self, step_name: str) -> Any:
        """Return the content of a dependency's envelope, or None if it has no result."""
        envelope = self.dependency_results.get(step_name)
        return envelope["result"] if isinstance(envelope, dict) and "result" in envelope else envelope

    def get_all_dependency_results(self, prefix: str) -> list[Any]:
        """Return the results of the steps above whose names start with `prefix`."""
        return [result for result in super().get_all_dependency_results(prefix) if result is not None]

    @yes_or_no
    def has_checkpoint(self) -> bool:
        """Return True if an earlier run of this step saved a cursor."""
        return self.checkpoint_cursor is not None


def event_of(context: EngineContext) -> FfiStepEvent:
    """Return the event form of the step that the context belongs to. Raises `ValueError` if no worker made it."""
    if isinstance(context, EventContext):
        return context.event
    if context._claim is None or context._template is None or context._step is None:
        raise ValueError(f"expected the context of a claimed step, got {context!r}")
    inputs = None if context.reads_task else context.input_data
    results = context.dependency_results
    return event_for(context._claim, context._template, context._step, context.task_input, results, inputs)
