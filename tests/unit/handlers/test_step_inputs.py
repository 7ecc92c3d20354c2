"""Scope of expressions: results by name, instances of a batch_worker in order, nothing copied or decoded unread."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import tasker_core.types
from tasker.expressions.mapping import InputMapping, MappingFailure
from tasker.handlers.copies import CopyOnRead
from tasker.handlers.step_inputs import StepResults
from tasker.template import compile_text
from tasker.template.plan import Plan
from tasker.testing.contexts import TASK, step_context, step_inputs
from tasker.types import StepContext

TEMPLATE = """
name: batches
namespace: demo
version: 1.0.0
steps:
  - {name: cut, type: batchable, handler: h}
  - {name: work, type: batch_worker, handler: h, dependencies: [cut], inputs: {rows: "${steps.cut.rows}"}}
  - name: join
    type: deferred_convergence
    handler: h
    dependencies: [work]
    inputs:
      sums: "${steps.work.map(result, result.sum)}"
      total: "${steps.work.map(result, result.sum).sum()}"
      key: "${task.id}/${attempt}"
      cut: "${has(steps.cut) ? steps.cut.rows : 0}"
"""
RESULTS: dict[str, Any] = {
    "cut": {"rows": 30},
    "work_010": {"sum": 10},
    "work_002": {"sum": 2},
    "work_001": {"sum": 1},
    "work_1000": {"sum": 1000},
}


def test_results_of_a_batch_worker_are_a_list_in_the_order_of_its_instances() -> None:
    (plan,) = compile_text(TEMPLATE).plans
    inputs = step_inputs(plan, "join", {}, results=RESULTS, attempt=3)
    assert inputs == {"sums": [1, 2, 10, 1000], "total": 1013, "key": f"{TASK}/3", "cut": 30}
    assert step_inputs(plan, "work", {}, results=RESULTS) == {"rows": 30}


def test_step_without_a_result_is_named() -> None:
    (plan,) = compile_text(TEMPLATE).plans
    with pytest.raises(MappingFailure, match="the step `cut` has no result"):
        step_inputs(plan, "work", {}, results={})
    assert step_inputs(plan, "join", {}, results={})["cut"] == 0
    assert step_inputs(plan, "join", {}, results={})["sums"] == []


def test_results_are_read_singly_and_uncopied() -> None:
    (plan,) = compile_text(TEMPLATE).plans
    read: list[str] = []
    value = {"rows": [1, 2]}

    def decode(name: str) -> Any:
        read.append(name)
        return value

    results = CopyOnRead({"cut": None, "other": None}, decode)
    inputs = InputMapping({"rows": "${steps.cut.rows}"}).evaluate({"steps": StepResults(plan, results)})
    assert inputs["rows"] is value["rows"]
    assert read == ["cut"]


def test_input_of_one_attempt_is_evaluated_within_one_budget() -> None:
    expression = "${input.xs.map(x, input.xs.map(y, y)).size()}"
    scope = {"input": {"xs": list(range(400))}}
    assert InputMapping({"a": expression}).evaluate(scope) == {"a": 400}
    with pytest.raises(MappingFailure, match=r"inputs\.b: the expression does too much work"):
        InputMapping({"a": expression, "b": expression}).evaluate(scope)


def mapped_context() -> StepContext:
    plain = step_context({"order": "o-1"}, results={"quote": {"total": 1}})
    assert plain._claim is not None
    assert plain._step is not None
    step = replace(plain._step, inputs={"amount": "${steps.quote.total}"})
    return StepContext.build(
        claim=plain._claim,
        plan=Plan("tests", "test", "1.0.0", (step,)),
        step=step,
        task_context={"order": "o-1"},
        dependency_results={"quote": {"total": 1}},
        inputs={"amount": 1},
    )


CONTEXTS = [
    lambda context: context,
    lambda context: StepContext.from_ffi_event(context.event, "h"),
    lambda context: tasker_core.types.StepContext.from_engine(context),
    lambda context: pickle.loads(pickle.dumps(context)),
    lambda context: copy.deepcopy(context),
]


@pytest.mark.parametrize("form", CONTEXTS)
def test_every_form_of_a_context_has_the_inputs_and_the_input_of_the_task(form: Callable[[StepContext], Any]) -> None:
    context = form(mapped_context())
    assert (context.get_input("amount"), context.get_input("order")) == (1, None)
    assert dict(context.input_data) == {"amount": 1}
    assert dict(context.task_input) == {"order": "o-1"}
    assert context.get_task_field("order") == "o-1"
    assert context.event.task_sequence_step["task"]["context"] == {"order": "o-1"}
    assert context.event.task_sequence_step["workflow_step"]["handler_inputs"] == {"amount": 1}


def test_event_of_a_step_without_inputs_has_none() -> None:
    assert "handler_inputs" not in step_context({"a": 1}).event.task_sequence_step["workflow_step"]
