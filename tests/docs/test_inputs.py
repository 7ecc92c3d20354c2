"""The page on inputs: its template, its handler, its messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tasker.expressions.check import _METHOD_TYPES
from tasker.expressions.evaluation import Expression
from tasker.expressions.functions import FUNCTIONS, METHODS
from tasker.expressions.mapping import MappingFailure
from tasker.expressions.syntax import MACROS, MAX_DEPTH, MAX_TEXT
from tasker.expressions.values import BUDGET
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.workflows.handlers import misfits
from tasker.template import compile_text
from tasker.template.report import render_text
from tasker.testing.contexts import step_inputs
from tests.docs.snippets import snippets
from tests.support.repository import ROOT

PAGE = (ROOT / "docs" / "inputs.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return [snippet.text for snippet in snippets(PAGE) if snippet.language == language]


(TEMPLATE,) = blocks("yaml")
HANDLER, EXAMPLE = blocks("python")
MISTAKE, FAILURE = blocks("text")
VALUES: dict[str, Any] = {"order_id": "o-1", "lines": [{"sku": "a", "price": 2.5}]}


def handler() -> Callable[..., Any]:
    names: dict[str, Any] = {"__name__": "handlers_of_the_page"}
    exec(HANDLER, names)
    charge: Callable[..., Any] = names["charge"]
    return charge


def test_template_has_no_problem_and_its_handler_fits() -> None:
    compiled = compile_text(TEMPLATE)
    assert render_text(compiled.diagnostics, compiled.sources) == ""
    (plan,) = compiled.plans
    registry = HandlerRegistry()
    registry.register("charge", handler())
    step = plan.by_name["charge"]
    assert list(misfits(plan, step, registry.of_step(step, plan.id))) == []
    inputs = step_inputs(plan, "charge", VALUES, results={"quote": {"amount": 2.5}})
    assert handler()(**inputs) == {"charged": 2.5, "reference": "order o-1, attempt 1"}


def test_example_of_a_test_passes() -> None:
    exec(EXAMPLE, {"TEMPLATE": TEMPLATE})


def test_message_of_a_mistake_is_what_the_compiler_says() -> None:
    compiled = compile_text(TEMPLATE.replace("steps.quote.amount", "steps.quote.amout"), file="workflow.yaml")
    assert render_text(compiled.diagnostics, compiled.sources).strip().startswith(MISTAKE.strip())


def test_message_of_a_failure_is_what_the_worker_stores() -> None:
    text = TEMPLATE.replace("required: [amount]", "additionalProperties: true").replace("quote.amount", "quote.amout")
    (plan,) = compile_text(text).plans
    with pytest.raises(MappingFailure) as failure:
        step_inputs(plan, "charge", VALUES, results={"quote": {"amount": 2.5}})
    assert str(failure.value) == FAILURE.strip()


def test_every_function_is_listed() -> None:
    listed = [*(f".{name}(" for name in (*METHODS, *MACROS)), *(f"{name}(x)" for name in FUNCTIONS if name != "dyn")]
    assert [name for name in listed if name not in PAGE] == []
    assert set(_METHOD_TYPES) <= set(METHODS)


def test_limits_are_those_of_the_code() -> None:
    for number in (MAX_TEXT, MAX_DEPTH, BUDGET):
        assert f"{number:,}" in PAGE


@pytest.mark.parametrize(("text", "value"), [("7 / 2", 3), ("double(7) / 2", 3.5), ("string(1234567.5)", "1234567.5")])
def test_named_deviations_are_as_described(text: str, value: Any) -> None:
    assert Expression(text).evaluate({}) == value
