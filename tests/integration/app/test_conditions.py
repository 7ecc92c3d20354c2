"""`when`, `rules` and `for_each`: which steps run, what they read, and what is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tasker
from tests.support.command_line import write_workflow

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
