"""Context of a handler in the form of tasker_core: results of the steps above are in their envelopes."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict

from tasker.handlers.context import StepContext as EngineContext
from tasker.handlers.legacy_event import FfiStepEvent as EngineEvent
from tasker.handlers.readable import yes_or_no
from tasker_core.models import TaskSequenceStepWrapper


class FfiStepEvent(EngineEvent):
    """Immutable event form of a step that is ready for its handler."""

    model_config = ConfigDict(frozen=True)


class StepContext(EngineContext):
    """The engine's context, created from the event form of a step.

    `dependency_results` contains envelopes (`{"result": ...}`), which `get_dependency_result` opens once. Additions of
    the engine, such as `cancelled`, are available as well.
    """

    event: FfiStepEvent

    @classmethod
    def from_ffi_event(cls, event: EngineEvent, handler_name: str) -> StepContext:
        """Create the context from the event form of a step."""
        known = event if isinstance(event, FfiStepEvent) else FfiStepEvent(**dict(event))
        made = super().from_ffi_event(known, handler_name)
        assert isinstance(made, cls)
        made.dependency_results = event.task_sequence_step.get("dependency_results") or {}
        made.max_retries = made.max_retries or 3
        return made

    @classmethod
    def from_engine(cls, context: EngineContext) -> StepContext:
        """Create the context from the engine's context."""
        made = cls.from_ffi_event(context.event, context.handler_name)
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

    @property
    def task_sequence_step(self) -> TaskSequenceStepWrapper:
        """Task, step, dependency results and definition as wrapped objects."""
        return TaskSequenceStepWrapper.from_dict(self.event.task_sequence_step)
