"""A handler gets the published context from the engine, and answers it in the published way."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any
from unittest.mock import MagicMock

import pytest

import tasker_core as t
from tasker.errors import MethodNotFound
from tasker.execution.attempt.settle import settle_return_value
from tasker.handlers.registry.registry import HandlerRegistry as EngineRegistry
from tasker.registry import HandlerDefinition
from tasker.step_handler import CheckpointYield
from tasker.testing.contexts import step_context
from tasker.types import StepContext as EngineContext
from tasker.types import StepHandlerResult as EngineResult
from tasker_core.step_handler import StepHandler, batch_worker, step_handler
from tests.support.published_shop import answer


class Mixed:
    """No handler, but some of its methods are a handler's."""

    def refund(self, context: Any) -> Any:
        return self.success({"seen": type(context).__name__})  # type: ignore[attr-defined]


class Reading(Mixed, StepHandler, t.Batchable):
    handler_name = "reading"

    def call(self, context: Any) -> Any:
        assert isinstance(context, t.StepContext)
        return self.success({"envelope": context.dependency_results["above"], "named": context.step_name})

    async def later(self, context: Any) -> Any:
        return self.success({"seen": type(context).__name__})

    def save(self, context: Any) -> Any:
        return self.checkpoint_yield(4, 2, {"sum": 6})


class Unfinished(StepHandler):
    handler_name = "unfinished"


class Configured(StepHandler):
    handler_name = "configured"

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.unit = config["unit"]

    def call(self, context: Any) -> Any:
        return self.success({"unit": self.unit})


class Counting(StepHandler):
    handler_name = "counting"

    def __init__(self) -> None:
        self.calls = 0

    def call(self, context: Any) -> Any:
        self.calls += 1
        return self.success({"calls": self.calls})


def given(**changed: Any) -> EngineContext:
    return step_context({"a": 1}, results={"above": {"result": 7}}, **changed)


def resolved(handler: type[Any], method: str | None = None, config: dict[str, Any] | None = None) -> Any:
    registry = EngineRegistry()
    registry.register("it", handler)
    return registry.resolved(HandlerDefinition("it", method, initialization=config or {}))


def test_results_of_steps_above_come_in_their_envelopes() -> None:
    found = resolved(Reading).call(given(name="here"))

    assert isinstance(found, EngineResult)
    assert found.result == {"envelope": {"result": {"result": 7}}, "named": "here"}


def test_a_method_of_a_mixin_gets_the_published_context_too() -> None:
    assert resolved(Reading, "refund").call(given()).result == {"seen": "StepContext"}


def test_an_async_method_stays_one() -> None:
    handler = resolved(Reading, "later")

    assert handler.kind == "async"
    assert asyncio.run(handler.call(given())).result == {"seen": "StepContext"}


def test_a_checkpoint_is_a_value_for_the_author_and_leaves_the_handler_for_the_engine() -> None:
    plain = Reading().save(t.StepContext.from_engine(given()))
    with pytest.raises(CheckpointYield) as stop:
        resolved(Reading, "save").call(given())

    assert plain.metadata["checkpoint_yield"] is True
    assert (stop.value.cursor, stop.value.items_processed, stop.value.accumulated_results) == (4, 2, {"sum": 6})


def test_the_context_tells_of_the_attempt_and_of_being_cancelled() -> None:
    context = t.StepContext.from_engine(given(attempt=3, checkpoint={"cursor": 5, "items_processed": 5}))

    assert (context.retry_count, context.is_last_retry(), context.cancelled) == (2, True, False)
    assert (context.has_checkpoint(), context.checkpoint_cursor) == (True, 5)
    assert context.get_dependency_result("above") == {"result": 7}


def test_a_handler_that_wants_its_configuration_gets_the_step_s() -> None:
    handler = resolved(Configured, config={"unit": "kg"})

    assert handler.call(given(config={"unit": "kg"})).result == {"unit": "kg"}
    assert Configured({"unit": "g"}).unit == "g"


def test_every_execution_has_a_handler_of_its_own() -> None:
    handler = resolved(Counting)

    assert [handler.call(given()).result["calls"] for _ in range(2)] == [1, 1]


def test_a_class_without_call_is_still_abstract() -> None:
    assert inspect.isabstract(Unfinished)
    with pytest.raises(TypeError):
        Unfinished()  # type: ignore[abstract]


def test_a_template_that_names_no_method_of_the_handler_is_told_so() -> None:
    with pytest.raises(MethodNotFound):
        resolved(Reading, "nope")


def test_a_function_gets_what_it_declared_and_its_error_its_type() -> None:
    @step_handler("f")
    def refuse(context: Any) -> None:
        assert isinstance(context, t.StepContext)
        raise t.StepValidationError("no", error_code="E1")

    found = resolved(refuse._handler_class).call(given())  # type: ignore[attr-defined]
    assert (found.error_type, found.retryable, found.error_code) == ("permanent_error", False, "E1")


def test_a_function_that_yields_a_checkpoint_is_run_again() -> None:
    @batch_worker("w")
    def work(batch_context: Any) -> Any:
        return t.Batchable().checkpoint_yield(batch_context.start_cursor + 1, 1)

    with pytest.raises(CheckpointYield):
        resolved(work._handler_class).call(given(batch=(0, 3)))  # type: ignore[attr-defined]


def test_the_mixins_answer_through_the_handler_s_own_success_and_failure() -> None:
    class Marked(t.ApiHandler, t.DecisionHandler, t.Batchable):
        def success(self, result: Any = None, metadata: Any = None) -> t.StepHandlerResult:
            return super().success(result, {**(metadata or {}), "marked": True})

        def failure(self, *args: Any, **fields: Any) -> t.StepHandlerResult:
            found = super().failure(*args, **fields)
            found.metadata["marked"] = True
            return found

        def call(self, context: Any) -> Any:
            return self.success()

    handler = Marked()
    answers = [
        handler.no_batches_outcome("r"),
        handler.batch_worker_success(items_processed=1),
        handler.batch_worker_success(),
        handler.skip_branches("r"),
        handler.api_success(answer(200, {})),
        handler.api_failure(answer(500, {})),
        handler.timeout_error(OSError()),
    ]
    assert [found.metadata["marked"] for found in answers] == [True] * 7


def test_the_helpers_of_batches_take_a_stand_in_for_a_context() -> None:
    """Tests of handlers use them."""
    stand_in = MagicMock()
    stand_in.step_inputs = {"cursor": {"batch_id": "002", "start_cursor": 3, "end_cursor": 9, "batch_size": 6}}
    batch = Reading().get_batch_context(stand_in)

    assert batch is not None
    assert (batch.start_cursor, batch.end_cursor, batch.batch_index, batch.has_checkpoint()) == (3, 9, 1, False)
    assert Reading().get_batch_worker_inputs(MagicMock()) is None
    assert Reading().handle_no_op_worker(MagicMock()) is None


def test_a_batch_knows_how_many_there_are_where_the_analysis_is_above() -> None:
    analysis = {"worker_count": 3, "batch_processing_outcome": {"type": "create_batches"}}
    context = t.StepContext.from_engine(step_context({}, results={"analyze": analysis}, batch=(0, 4)))
    batch = Reading().get_batch_context(context)

    assert batch is not None
    assert (batch.total_batches, batch.step_size, batch.is_no_op) == (3, 4, False)


def test_a_result_is_one_for_the_engine() -> None:
    step = given()._step
    assert step is not None
    found: Any = settle_return_value(t.StepHandlerResult.success({"a": 1}), step, "h")

    assert found.encoded.text == '{"a":1}'
