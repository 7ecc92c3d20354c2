"""`when`, `rules` and `for_each`: which steps run, what they read, and what is stored."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tasker
from tests.support.command_line import invoke, write_workflow

HANDLERS = """
from tasker.step_handler import inputs, step_handler


@step_handler("quote")
@inputs("amount")
def quote(amount):
    return {"total": amount}


@step_handler("plain")
def plain():
    return {"done": True}


@step_handler("collect")
@inputs("values")
def collect(values):
    return {"values": values}


@step_handler("double")
@inputs("item")
def double(item):
    if item == "bad":
        raise ValueError("a bad item")
    return {"double": item * 2}
"""
HEAD = """
name: flow
namespace: conditions
version: 1.0.0
input_schema:
  type: object
  required: [amount, items]
  properties: {amount: {type: number}, items: {type: array}}
steps:
  - {name: quote, handler: quote, result_schema: {type: object, required: [total], properties: {total: {type: number}}}}
"""


def run(url: str, folder: Path, steps: str, context: dict[str, Any]) -> Any:
    workflow = write_workflow(folder / "flow", HEAD + steps, HANDLERS)
    with tasker.SyncApp(url) as app:
        return app.run(workflow, {"amount": 1, "items": [], **context}, timeout=60)


PAY = """
  - {name: pay, handler: plain, dependencies: [quote], when: "steps.quote.total > 0"}
  - {name: receipt, handler: plain, dependencies: [pay]}
  - name: end
    type: deferred_convergence
    handler: collect
    dependencies: [pay, receipt]
    inputs: {values: "${has(steps.receipt)}"}
"""


@pytest.mark.parametrize(("amount", "taken"), [(5, True), (0, False)])
def test_step_and_those_below_it_exist_only_if_its_condition_is_true(
    database_url: str, tmp_path: Path, amount: int, taken: bool
) -> None:
    report = run(database_url, tmp_path, PAY, {"amount": amount})
    assert report.succeeded, report
    assert sorted(report.results) == ["end", *(["pay"] if taken else []), "pay.when", "quote", *(["receipt"] * taken)]
    assert report.results["end"] == {"values": taken}
    outcome = {"type": "create_steps", "step_names": ["pay"]} if taken else {"type": "no_branches"}
    assert report.results["pay.when"] == {
        "decision_point_outcome": outcome,
        "rule": 1 if taken else None,
        "reason": f"steps.quote.total > 0 is {str(taken).lower()}",
    }


EACH = """
  - name: work
    handler: double
    dependencies: [quote]
    for_each: {in: input.items, batch_size: SIZE, on_error: ERROR}
    retry: {max_attempts: 1}
  - {name: end, type: deferred_convergence, handler: collect, dependencies: [work], inputs: {values: "${steps.work}"}}
"""


def each(size: int, on_error: str = "fail") -> str:
    return EACH.replace("SIZE", str(size)).replace("ERROR", on_error)


@pytest.mark.parametrize("size", [1, 2, 10])
def test_results_of_all_items_are_a_list_in_the_order_of_the_items(
    database_url: str, tmp_path: Path, size: int
) -> None:
    report = run(database_url, tmp_path, each(size), {"items": [1, 2, 3, 4, 5]})
    assert report.succeeded, report
    assert report.results["end"] == {"values": [{"double": number * 2} for number in (1, 2, 3, 4, 5)]}


def test_empty_list_calls_no_handler_and_is_joined_as_an_empty_list(database_url: str, tmp_path: Path) -> None:
    report = run(database_url, tmp_path, each(1), {"items": []})
    assert report.succeeded, report
    assert report.results["end"] == {"values": []}
    assert report.results["work_001"] == {"results": []}


@pytest.mark.parametrize("size", [1, 2, 10])
def test_failures_are_collected_in_the_place_of_their_items(database_url: str, tmp_path: Path, size: int) -> None:
    report = run(database_url, tmp_path, each(size, "collect"), {"items": [1, "bad", 3]})
    assert report.succeeded, report
    first, failed, last = report.results["end"]["values"]
    assert first == {"ok": True, "result": {"double": 2}}
    assert last == {"ok": True, "result": {"double": 6}}
    assert (failed["ok"], failed["error"]["message"]) == (False, "a bad item")


@pytest.mark.parametrize("size", [1, 10])
def test_failed_item_fails_the_task_unless_failures_are_collected(database_url: str, tmp_path: Path, size: int) -> None:
    report = run(database_url, tmp_path, each(size), {"items": [1, "bad", 3]})
    assert not report.succeeded
    assert "end" not in report.results


ROUTE = """
  - name: route
    dependencies: [quote]
    rules:
      - {when: "steps.quote.total >= 90", then: [manual], because: "total ${steps.quote.total}"}
      - {when: "steps.quote.total >= 50", then: [manual, second]}
      - {when: "steps.quote.total < 0", then: []}
      - {else: [automatic], because: small}
  - {name: manual, handler: plain, dependencies: [route], when: "!input.items.exists(item, item == 'skip')"}
  - {name: second, handler: double, dependencies: [route], for_each: input.items}
  - {name: automatic, handler: plain, dependencies: [route]}
  - name: end
    type: deferred_convergence
    handler: collect
    dependencies: [route, manual, second, automatic]
    inputs: {values: "${[has(steps.manual), has(steps.automatic), steps.second.size()]}"}
"""
ROUTES = [
    (95, [], [True, False, 0], 1, "total 95"),
    (95, ["skip"], [False, False, 0], 1, "total 95"),
    (60, [1, 2], [True, False, 2], 2, "steps.quote.total >= 50 is true"),
    (-1, [], [False, False, 0], 3, "steps.quote.total < 0 is true"),
    (10, [], [False, True, 0], 4, "small"),
]


def test_first_rule_that_applies_creates_its_steps(database_url: str, tmp_path: Path) -> None:
    workflow = write_workflow(tmp_path / "flow", HEAD + ROUTE, HANDLERS)
    with tasker.SyncApp(database_url) as app:
        for amount, items, values, rule, reason in ROUTES:
            report = app.run(workflow, {"amount": amount, "items": items}, timeout=60)
            assert report.succeeded, report
            assert report.results["end"] == {"values": values}
            assert (report.results["route"]["rule"], report.results["route"]["reason"]) == (rule, reason)


CHAIN = "".join(
    f'  - {{name: {name}, handler: plain, dependencies: [{above}], when: "input.amount > {number}.0"}}\n'
    for number, (above, name) in enumerate(pairwise(["quote", *(f"s{number}" for number in range(6))]))
)


@pytest.mark.parametrize("amount", [0, 4, 6])
def test_conditions_follow_each_other_beyond_the_depth_of_decisions_by_handlers(
    database_url: str, tmp_path: Path, amount: int
) -> None:
    report = run(database_url, tmp_path, CHAIN, {"amount": amount})
    assert report.succeeded, report
    assert [name for name in report.results if name.startswith("s") and "." not in name] == [
        f"s{n}" for n in range(amount)
    ]


BY_HANDLER = """
  - {name: decide, type: decision, handler: decide, dependencies: [quote]}
  - {name: one, handler: plain, dependencies: [decide], when: "input.amount > 1.0"}
  - {name: all, handler: double, dependencies: [decide], for_each: input.items}
"""
DECIDE = """

from tasker.step_handler import Decision, decision_handler


@decision_handler("decide")
def decide():
    return Decision.route(["one", "all"])
"""


def test_handler_that_decides_names_steps_with_conditions_and_lists_as_they_are_written(
    database_url: str, tmp_path: Path
) -> None:
    workflow = write_workflow(tmp_path / "flow", HEAD + BY_HANDLER, HANDLERS + DECIDE)
    with tasker.SyncApp(database_url) as app:
        taken = app.run(workflow, {"amount": 2, "items": [1]}, timeout=60)
        left = app.run(workflow, {"amount": 1, "items": [1]}, timeout=60)
    assert sorted(taken.results) == ["all.each", "all_001", "decide", "one", "one.when", "quote"]
    assert sorted(left.results) == ["all.each", "all_001", "decide", "one.when", "quote"]


FAILING = """
  - {name: pay, handler: plain, dependencies: [quote], when: "input.items[3] == 1"}
  - {name: end, type: deferred_convergence, handler: plain, dependencies: [pay]}
"""


def test_condition_without_a_value_fails_permanently_with_its_expression(database_url: str, tmp_path: Path) -> None:
    report = run(database_url, tmp_path, FAILING, {"items": [1]})
    assert not report.succeeded
    (failure,) = report.steps["pay.when"].failures
    assert (failure["error_type"], failure["retryable"]) == ("input_mapping_failed", False)
    assert failure["message"].startswith("when: there is no position 3 in a list of 1\n  input.items[3] == 1\n")
    assert failure["metadata"] == {"path": "when", "expression": "input.items[3] == 1", "column": 13}
    assert "end" not in report.steps


SHOWN = EACH.replace("SIZE", "2").replace("ERROR", "fail") + PAY.partition("  - name: end")[0]


def test_decisions_and_inputs_are_shown_by_commands(database_url: str, tmp_path: Path) -> None:
    task = run(database_url, tmp_path, SHOWN, {"amount": 0, "items": [1, 2, 3]}).task_uuid
    shown = invoke("task", "show", task, database=database_url).stdout
    assert "pay.when created no steps: steps.quote.total > 0 is false" in shown
    explained = invoke("task", "explain", task, "--step", "receipt", database=database_url).stdout
    assert "pay.when did not create pay, because: steps.quote.total > 0 is false" in explained
    inputs = invoke("task", "step", "inputs", task, "work_002", "--format", "json", database=database_url).stdout
    assert json.loads(inputs)["inputs"] == {"item": 3}
    both = invoke("task", "step", "inputs", task, "work_001", "--format", "json", database=database_url).stdout
    assert json.loads(both)["inputs"] == {"0": {"item": 1}, "1": {"item": 2}}


WITHOUT_PYTHON = """
  - name: plan
    handler: tasker.transform
    inputs: {large: "${input.amount > 100.0}"}
  - {name: alarm, handler: tasker.log, dependencies: [plan], when: steps.plan.large, inputs: {message: large}}
  - name: each
    handler: tasker.transform
    dependencies: [plan]
    for_each: input.items
    inputs: {number: "${item}", last: "${index == input.items.size() - 1}"}
    result_schema: {type: object, required: [number], properties: {number: {type: integer}, last: {type: boolean}}}
  - {name: all, type: deferred_convergence, handler: tasker.collect, dependencies: [alarm, each]}
  - name: sum
    handler: tasker.transform
    dependencies: [all]
    inputs: {sum: "${steps.all.each.map(e, e.number).sum()}"}
"""


def test_built_in_steps_take_conditions_and_lists(database_url: str, tmp_path: Path) -> None:
    report = run(database_url, tmp_path, WITHOUT_PYTHON, {"amount": 7, "items": [1, 2]})
    assert report.succeeded, report
    assert report.results["all"] == {"each": [{"number": 1, "last": False}, {"number": 2, "last": True}]}
    assert report.results["sum"] == {"sum": 3}
