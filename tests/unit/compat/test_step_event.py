"""The event form of a step says the same as the context that a worker makes."""

from __future__ import annotations

import pytest

from tasker.types import StepContext as EngineContext
from tasker_core import StepContext
from tasker_core.types.context import EventContext, event_of
from tests.unit.handlers.support import context

CHECKPOINT = {"cursor": 500, "items_processed": 500, "accumulated_results": {"sum": 7}, "history": []}


def test_the_event_form_says_the_same_as_the_context() -> None:
    made = context({"amount": 5}, results={"a": {"x": 1}}, config={"k": 1}, checkpoint=CHECKPOINT, attempt=2)
    event = event_of(made)
    again = EventContext.from_ffi_event(event, made.handler_name)
    for field in EngineContext.model_fields:
        assert getattr(again, field) == getattr(made, field)
    assert again.checkpoint == CHECKPOINT
    assert (again.step_name, again.namespace) == ("charge", "shop")
    assert event_of(again) is event


def test_the_task_may_sit_one_level_deeper_in_an_event() -> None:
    event = event_of(context({"amount": 5}))
    nested = {**event.task_sequence_step, "task": {"task": event.task_sequence_step["task"], "task_name": "checkout"}}
    deeper = event.model_copy(update={"task_sequence_step": nested})
    assert EventContext.from_ffi_event(deeper, "charge").input_data == {"amount": 5}


def test_wrapped_objects_are_there_for_older_code() -> None:
    made = StepContext.from_engine(context({"amount": 5}, results={"a": {"x": 1}}))
    assert made.task.context == {"amount": 5}
    wrapped = made.task_sequence_step
    assert wrapped.get_task_field("amount") == 5
    assert wrapped.get_dependency_result("a") == {"x": 1}
    assert wrapped.dependency_results.get("gone", {}) == {}
    assert (wrapped.workflow_step.name, wrapped.step_definition.handler.callable) == ("charge", "charge")


def test_a_context_that_no_worker_made_has_no_event_form() -> None:
    made = context()
    with pytest.raises(ValueError, match="context of a claimed step"):
        event_of(
            EngineContext(
                task_uuid=made.task_uuid,
                step_uuid=made.step_uuid,
                correlation_id=made.correlation_id,
                handler_name="charge",
            )
        )
