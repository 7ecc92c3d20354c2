"""`inputs` of a step: handlers of every kind read them, in every mode; a failure names path, expression and place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tasker
from tasker.errors import HandlerMismatch
from tests.support.command_line import invoke, write_workflow

WORKFLOW = """
name: mapped
namespace: mapping
version: 1.0.0
input_schema:
  type: object
  required: [order_id, rate]
  properties:
    order_id: {type: string}
    rate: {type: number}
    secret: {type: string, x-sensitive: true}
    extra: {}
steps:
  - name: quote
    handler: quote
  - name: charge
    handler: HANDLER
    dependencies: [quote]
    execution: {mode: MODE}
    inputs:
      amount: ${steps.quote.amount}
      note: "order ${input.order_id}: ${steps.quote.amount} EUR, ${task.id == input.order_id}"
      price: "$${5}"
      lines: "${steps.quote.lines.filter(line, line.price > 1).map(line, line.name)}"
      whole: ${steps.quote}
      attempt: ${attempt}
      nested: {list: [1, "${input.rate * 2}"], empty: null}
"""
HANDLERS = """
from pydantic import BaseModel
from tasker.step_handler import StepHandler, inputs, step_handler


@step_handler("quote")
def quote():
    return {"amount": 2.5, "lines": [{"name": "a", "price": 1}, {"name": "b", "price": 2}]}


READ = ("amount", "note", "price", "lines", "whole", "attempt", "nested")


@step_handler("function")
@inputs(*READ)
def function(amount, note, price, lines, whole, attempt, nested):
    whole["changed"] = lines.append("changed")
    return {"amount": amount, "note": note, "price": price, "lines": lines[:-1], "attempt": attempt, "nested": nested}


@step_handler("async_function")
@inputs(*READ)
async def async_function(amount, note, price, lines, whole, attempt, nested):
    return {"amount": amount, "note": note, "price": price, "lines": lines, "attempt": attempt, "nested": nested}


class Charge(BaseModel):
    whole: dict
    amount: float
    note: str
    price: str
    lines: list[str]
    attempt: int
    nested: dict


@step_handler("model")
@inputs(Charge)
def model(inputs):
    return inputs.model_dump(exclude={"whole"})


class Classical(StepHandler):
    handler_name = "classical"

    def call(self, context):
        data = {name: context.get_input(name) for name in READ if name != "whole"}
        assert context.input_data["whole"]["amount"] == context.get_input_or("amount")
        assert context.task_input["order_id"] == "o-1"
        assert context.get_task_field("order_id") == "o-1"
        assert context.get_input("order_id") is None
        return self.success(data)
"""
EXPECTED = {
    "amount": 2.5,
    "note": "order o-1: 2.5 EUR, false",
    "price": "${5}",
    "lines": ["b"],
    "attempt": 1,
    "nested": {"list": [1, 3.0], "empty": None},
}
INPUT = {"order_id": "o-1", "rate": 1.5}
KINDS = [
    ("function", "thread"),
    ("async_function", "async"),
    ("model", "thread"),
    ("classical", "thread"),
    ("function", "process"),
    ("classical", "process"),
]


def mapped(tmp_path: Path, handler: str = "function", mode: str = "thread", text: str = WORKFLOW) -> Path:
    return write_workflow(tmp_path / "mapped", text.replace("HANDLER", handler).replace("MODE", mode), HANDLERS)


def run(url: str, folder: Path, context: dict[str, Any] | None = None) -> Any:
    with tasker.SyncApp(url) as app:
        return app.run(folder, INPUT if context is None else context, timeout=60)


@pytest.mark.parametrize(("handler", "mode"), KINDS)
def test_handler_of_every_kind_reads_the_inputs(database_url: str, tmp_path: Path, handler: str, mode: str) -> None:
    report = run(database_url, mapped(tmp_path, handler, mode))
    assert report.succeeded, report
    assert report.results["charge"] == EXPECTED
    assert set(report.results["quote"]) == {"amount", "lines"}


def test_expression_without_a_value_fails_the_step_for_good(database_url: str, tmp_path: Path) -> None:
    text = WORKFLOW.replace("${steps.quote.amount}\n", "${steps.quote.amout}\n")
    report = run(database_url, mapped(tmp_path, text=text))
    (failure,) = report.steps["charge"].failures
    assert failure["error_type"] == "input_mapping_failed"
    assert failure["retryable"] is False
    assert failure["message"] == ("inputs.amount: there is no `amout`\n  steps.quote.amout\n              ^^^^^")
    assert failure["metadata"] == {"path": "inputs.amount", "expression": "steps.quote.amout", "column": 13}


def test_failure_redacts_sensitive_input(database_url: str, tmp_path: Path) -> None:
    text = WORKFLOW.replace("${steps.quote.amount}\n", "${int(input.?secret.orValue(''))}\n")
    report = run(database_url, mapped(tmp_path, text=text), {**INPUT, "secret": "s3cr3t-value"})
    assert "s3cr3t" not in str(report.steps["charge"].failures)


def test_inputs_are_shown_again_and_are_not_stored(database_url: str, tmp_path: Path) -> None:
    folder = mapped(tmp_path)
    with tasker.SyncApp(database_url) as app:
        task = app.run(folder, INPUT, timeout=60).task_uuid
        steps = {step.name: step.step_uuid for step in app.views.steps(task)}
        shown = app.views.inputs(task, steps["charge"])
        plain = app.views.inputs(task, steps["quote"])
    assert shown.evaluated
    assert {name: value for name, value in shown.inputs.items() if name != "whole"} == EXPECTED
    assert shown.problems == {}
    assert (plain.evaluated, plain.inputs) == (False, INPUT)


AMOUNT, ATTEMPT = "amount: ${steps.quote.amount}", "attempt: ${attempt}"
MISFITS = [
    ("function", AMOUNT, "amont: ${steps.quote.amount}", "`amount`, which the `inputs`", "`amont`?"),
    ("function", ATTEMPT, f"{ATTEMPT}\n      more: 1", "does not read the input `more`", "remove it"),
    ("model", ATTEMPT, f"{ATTEMPT}\n      atempt: 1", "does not read the input `atempt`", "`attempt`?"),
    ("model", 'note: "order', 'note: ${attempt}\n      whole2: "order', "takes string as the input `note`", "string("),
    ("model", AMOUNT, "amount: '${[1]}'", "takes number as the input `amount`", "string("),
]


@pytest.mark.parametrize(("handler", "written", "instead", "message", "hint"), MISFITS)
def test_handler_that_does_not_fit_the_inputs_is_refused_before_the_run(
    database_url: str, tmp_path: Path, handler: str, written: str, instead: str, message: str, hint: str
) -> None:
    text = WORKFLOW.replace(written, instead)
    with pytest.raises(HandlerMismatch) as refused:
        run(database_url, mapped(tmp_path, handler, text=text))
    assert message in str(refused.value)
    assert hint in str(refused.value)


def test_command_shows_the_inputs(database_url: str, tmp_path: Path) -> None:
    task = run(database_url, mapped(tmp_path), {**INPUT, "order_id": "o-2", "secret": "hidden"}).task_uuid
    shown = invoke("task", "step", "inputs", task, "charge", database=database_url).stdout
    assert shown.startswith("Input of step charge, attempt 1:\n")
    assert "  amount: 2.5\n" in shown
    assert '  note: "order o-2: 2.5 EUR, false"\n' in shown
    plain = invoke("task", "step", "inputs", task, "quote", database=database_url).stdout
    assert "(the task's: the step has no `inputs`)" in plain
    assert "hidden" not in plain
    as_json = invoke("task", "step", "inputs", task, "charge", "--format", "json", database=database_url).stdout
    assert json.loads(as_json)["inputs"]["lines"] == ["b"]


def test_command_shows_why_an_input_has_no_value(database_url: str, tmp_path: Path) -> None:
    text = WORKFLOW.replace("${steps.quote.amount}\n", "${steps.quote.amout}\n")
    task = run(database_url, mapped(tmp_path, text=text)).task_uuid
    shown = invoke("task", "step", "inputs", task, "charge", database=database_url).stdout
    assert "  amount: no value\n    inputs.amount: there is no `amout`\n      steps.quote.amout\n" in shown
