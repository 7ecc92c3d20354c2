from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from tasker.engine.expansion.batches import parse_batches
from tasker.engine.expansion.choices import parse_decision
from tasker.errors import ConfigurationError, PermanentError, RetryableError, UsageError
from tasker.handlers.batch_arithmetic import Batches
from tasker.handlers.decisions import BatchConfig, Decision
from tasker.handlers.decorators import (
    api_handler,
    batch_aggregator,
    batch_analyzer,
    batch_worker,
    decision_handler,
    depends_on,
    inputs,
    step_handler,
)
from tasker.step_handler import CheckpointYield
from tasker.types import BatchWorkerOutcome, DecisionPointOutcome, StepContext, StepHandlerResult
from tests.unit.handlers.support import context, worker_inputs


class Cart(BaseModel):
    total: int
    currency: str = "EUR"


def handler_of(function: Any) -> Any:
    return function._handler_class()


def run(function: Any, made: StepContext | None = None) -> StepHandlerResult:
    result = handler_of(function).call(made or context())
    assert isinstance(result, StepHandlerResult)
    return result


@pytest.mark.parametrize(
    ("returned", "result"),
    [
        ({"a": 1}, {"a": 1}),
        (None, {}),
        (Cart(total=5), {"total": 5, "currency": "EUR"}),
        (42, {"result": 42}),
        ([1], {"result": [1]}),
        (False, {"result": False}),
    ],
)
def test_what_a_function_returns_becomes_the_result(returned: Any, result: dict[str, Any]) -> None:
    @step_handler("h")
    def function() -> Any:
        return returned

    assert run(function) == StepHandlerResult.success(result)


def test_a_result_passes_through() -> None:
    @step_handler("h")
    def function() -> Any:
        return StepHandlerResult.failure("no", "card_declined", False)

    assert run(function).error_type == "card_declined"


@pytest.mark.parametrize(
    ("error", "error_type", "retryable"),
    [
        (PermanentError("gone", error_code="E"), "permanent_error", False),
        (RetryableError("busy", retry_after=5), "retryable_error", True),
        (ValueError("x"), "handler_error", True),
        (KeyError("x"), "handler_error", False),
    ],
)
def test_what_a_function_raises_becomes_a_failure(error: Exception, error_type: str, retryable: bool) -> None:
    @step_handler("h")
    def function() -> Any:
        raise error

    result = run(function)
    assert (result.is_success, result.error_type, result.retryable) == (False, error_type, retryable)
    assert result.metadata["exception_type"] == type(error).__name__
    assert "traceback" in result.metadata
    assert result.metadata.get("retry_after") == getattr(error, "retry_after", None)
    assert result.error_code == getattr(error, "error_code", None)


async def test_async_functions_work_the_same() -> None:
    @step_handler("h")
    @inputs("amount")
    async def function(amount: int) -> Any:
        return {"double": amount * 2}

    @step_handler("h")
    async def failing() -> Any:
        raise PermanentError("gone")

    assert (await handler_of(function).call(context({"amount": 4}))).result == {"double": 8}
    assert (await handler_of(failing).call(context())).retryable is False


def test_the_function_stays_an_ordinary_function() -> None:
    @step_handler("charge", version="2.0.0")
    def charge(amount: int = 1) -> int:
        """Charge it."""
        return amount

    assert charge(5) == 5
    made: Any = charge
    handler = made._handler_class
    assert (handler.handler_name, handler.handler_version, handler.__doc__) == ("charge", "2.0.0", "Charge it.")
    assert (handler.__module__, handler.__qualname__) == (charge.__module__, charge.__qualname__)


@pytest.mark.parametrize("outermost", ["handler", "arguments"])
def test_arguments_come_by_name_whatever_the_order_of_decorators(outermost: str) -> None:
    def function(cart: Any, card: Any, context: StepContext, note: str = "none") -> Any:
        return {"cart": cart, "card": card, "step": context.step_name, "note": note}

    decorators: list[Any] = [depends_on(cart="validate"), inputs("card", "note"), step_handler("h")]
    for decorate in decorators if outermost == "handler" else reversed(decorators):
        function = decorate(function)
    made = context({"card": "x"}, results={"validate": {"total": 5}})
    assert run(function, made).result == {"cart": {"total": 5}, "card": "x", "step": "charge", "note": "none"}


def test_the_context_may_be_marked_unused() -> None:
    @step_handler("h")
    def function(_context: StepContext) -> Any:
        return _context.namespace

    assert run(function).result == {"result": "shop"}


def test_the_value_of_a_function_above_arrives_as_it_was_returned() -> None:
    @step_handler("h")
    @depends_on(count="count")
    def function(count: int) -> Any:
        return count + 1

    assert run(function, context(results={"count": {"result": 1}})).result == {"result": 2}


def test_models_are_validated() -> None:
    @step_handler("h")
    @depends_on(cart=("validate", Cart))
    @inputs(Cart)
    def function(cart: Cart, inputs: Cart) -> Any:
        return cart.total + inputs.total

    assert run(function, context({"total": 1}, results={"validate": {"total": 2}})).result == {"result": 3}


@pytest.mark.parametrize(
    ("task", "results", "said"),
    [
        (
            {"total": 1},
            {"validate": {"total": "much"}},
            "the result of step 'validate' (for 'cart') does not fit Cart: total",
        ),
        ({}, {"validate": {"total": 1}}, "the task's context (for 'inputs') does not fit Cart: total: Field required"),
    ],
)
def test_a_misfit_is_a_permanent_failure_that_names_the_place(
    task: dict[str, Any], results: dict[str, Any], said: str
) -> None:
    @step_handler("h")
    @depends_on(cart=("validate", Cart))
    @inputs(Cart)
    def function(cart: Cart, inputs: Cart) -> Any:
        return None

    result = run(function, context(task, results=results))
    assert (result.error_type, result.retryable) == ("validation_error", False)
    assert result.error_message is not None
    assert result.error_message.startswith(said)


def test_a_step_without_a_result_gives_none() -> None:
    @step_handler("h")
    @depends_on(cart=("validate", Cart))
    @inputs("card")
    def function(cart: Cart | None, card: str | None) -> Any:
        return {"cart": cart, "card": card}

    assert run(function).result == {"cart": None, "card": None}


def test_keyword_arguments_take_what_has_no_parameter() -> None:
    @step_handler("h")
    @inputs("a", "b")
    def function(a: int, **rest: Any) -> Any:
        return rest

    assert run(function, context({"a": 1, "b": 2})).result == {"b": 2}


def test_a_parameter_that_nothing_fills_is_an_error_before_the_first_run() -> None:
    @step_handler("h")
    def function(amount: int) -> Any:
        return amount

    with pytest.raises(ConfigurationError, match="nothing fills the parameter 'amount'") as caught:
        handler_of(function)
    assert "test_functional.py:" in str(caught.value)
    assert caught.value.hint is not None
    assert '@inputs("amount")' in caught.value.hint


def test_a_declaration_without_a_parameter_is_an_error() -> None:
    @step_handler("h")
    @depends_on(cart="validate")
    def function() -> Any:
        return None

    with pytest.raises(ConfigurationError, match="'cart' is declared but the function has no such parameter"):
        handler_of(function)


def test_names_and_a_model_do_not_mix() -> None:
    with pytest.raises(UsageError, match="names or one model"):
        inputs("a", Cart)


def test_a_decision_function_routes_and_skips() -> None:
    @decision_handler("route")
    @inputs("amount")
    def route(amount: int) -> Any:
        return (
            Decision.route(["manager"], route_type="manual") if amount > 10 else Decision.skip("small", amount=amount)
        )

    routed, skipped = run(route, context({"amount": 50})), run(route, context({"amount": 5}))
    assert parse_decision(routed.result).step_names == ("manager",)
    assert parse_decision(skipped.result).step_names == ()
    assert routed.result is not None
    assert skipped.result is not None
    assert routed.result["route_type"] == "manual"
    assert (skipped.result["reason"], skipped.result["amount"]) == ("small", 5)


def test_a_decision_function_may_return_a_bare_outcome_and_nothing_else() -> None:
    @decision_handler("route")
    @inputs("value")
    def route(value: Any) -> Any:
        return value

    assert parse_decision(
        run(route, context({"value": DecisionPointOutcome.create_steps(["a"])})).result
    ).step_names == ("a",)
    wrong = run(route, context({"value": {"route": "a"}}))
    assert (wrong.error_type, wrong.retryable) == ("invalid_handler_result", False)
    assert "expected Decision.route([...]) or Decision.skip(reason)" in str(wrong.error_message)


def test_an_analyzer_function_cuts_the_work() -> None:
    @batch_analyzer("analyze", worker_template="part")
    @inputs("rows")
    def analyze(rows: int) -> Any:
        return BatchConfig(total_items=rows, batch_size=10, metadata={"csv_path": "a.csv"})

    result = run(analyze, context({"rows": 25}))
    batches = parse_batches(result.result)
    assert (batches.pattern, len(batches.cursors), batches.total_items) == ("part", 3, 25)
    assert result.result is not None
    assert result.result["csv_path"] == result.result["batch_metadata"]["csv_path"] == "a.csv"
    assert parse_batches(run(analyze, context({"rows": 0})).result).cursors == ()
    assert "BatchConfig" in str(run(_wrong_analyzer()).error_message)


def _wrong_analyzer() -> Any:
    @batch_analyzer("analyze", worker_template="part")
    def analyze() -> Any:
        return 5

    return analyze


@batch_worker("work")
@depends_on(analysis="analyze")
def work(batch_context: Any, analysis: Any) -> Any:
    if not batch_context.has_checkpoint():
        batch_context.checkpoint_yield(5, 5, {"sum": 10})
    done = batch_context.checkpoint_items_processed + 5
    return BatchWorkerOutcome(items_processed=done, items_succeeded=done, last_cursor=batch_context.end_cursor)


def test_a_batch_function_gets_its_batch_and_resumes() -> None:
    with pytest.raises(CheckpointYield) as caught:
        run(work, context(inputs=worker_inputs()))
    assert caught.value.accumulated_results == {"sum": 10}
    resumed = run(work, context(inputs=worker_inputs(), checkpoint={"cursor": 5, "items_processed": 5}))
    assert resumed.result is not None
    assert (resumed.result["processed_count"], resumed.result["last_cursor"]) == (10, 10)


def test_the_placeholder_never_reaches_the_function() -> None:
    assert run(work, context(inputs=worker_inputs(no_op=True))).metadata == {"no_op": True}


def test_a_batch_function_in_an_ordinary_step_says_so() -> None:
    result = run(work)
    assert (result.retryable, result.metadata["hint"]) == (False, "use type batch_worker for it in the template")


def test_an_api_function_gets_the_verbs() -> None:
    @api_handler("fetch", "https://api.example.com", timeout=3.0, default_headers={"x": "1"})
    def fetch(api: Any) -> Any:
        return {"base": api.base_url, "timeout": api.default_timeout, "headers": api.default_headers}

    assert run(fetch).result == {"base": "https://api.example.com", "timeout": 3.0, "headers": {"x": "1"}}


class Part(BaseModel):
    total: int


def aggregated(results: dict[str, Any], worker: Any = ("work", Part)) -> tuple[StepHandlerResult, list[Batches[Any]]]:
    seen: list[Batches[Any]] = []

    @batch_aggregator("sum", analyzer="cut", worker_template=worker)
    def function(batches: Batches[Any]) -> dict[str, Any]:
        seen.append(batches)
        return {"batches": len(batches.results)}

    return run(function, context(results=results)), seen


CUT = {"rows": 20, "batch_processing_outcome": {"type": "create_batches", "worker_count": 3}}


def test_an_aggregator_gets_every_result_as_its_type_in_the_order_of_the_batches() -> None:
    result, (batches,) = aggregated({"work_010": {"total": 2}, "work_002": {"total": 1}, "cut": CUT})
    assert result == StepHandlerResult.success({"batches": 2})
    assert batches.results == {"work_002": Part(total=1), "work_010": Part(total=2)}
    assert list(batches.results) == ["work_002", "work_010"]
    assert (batches.no_batches, batches.missing, batches.analysis["rows"]) == (False, ["work_001", "work_003"], 20)


def test_an_aggregator_without_a_model_gets_plain_results() -> None:
    _, (batches,) = aggregated({"work_001": {"total": 2}, "cut": CUT}, "work")
    assert batches.results == {"work_001": {"total": 2}}


def test_an_aggregator_runs_without_batches() -> None:
    outcome = {"batch_processing_outcome": {"type": "no_batches"}}
    result, (batches,) = aggregated({"work_001": {"no_op": True}, "cut": outcome})
    assert (result.result, batches.results, batches.no_batches) == ({"batches": 0}, {}, True)


def test_a_batch_that_does_not_fit_its_type_is_a_permanent_failure_that_names_it() -> None:
    result, seen = aggregated({"work_001": {"total": "many"}, "cut": CUT})
    assert not seen
    assert (result.error_type, result.retryable) == ("validation_error", False)
    assert "the result of step 'work_001' (for 'batches') does not fit Part: total:" in str(result.error_message)
