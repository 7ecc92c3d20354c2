"""Scope of expressions: results by name, instances of a batch_worker in order, nothing copied or decoded unread."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.expressions.mapping import InputMapping, MappingFailure
from tasker.handlers.copies import CopyOnRead
from tasker.handlers.step_inputs import StepResults
from tasker.template import compile_text
from tasker.testing.contexts import TASK, step_inputs

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
