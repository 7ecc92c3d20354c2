"""Conditions and lists under failures: retries, operators, reruns and lost workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tasker
from tasker.execution.attempt import evaluated
from tasker.execution.in_flight import FencedWrites
from tasker.handlers import evaluated_steps
from tests.support.command_line import invoke, write_workflow

BY = {"actor": "ada", "reason": "by hand"}
HANDLERS = """
from pathlib import Path

from tasker.errors import PermanentError
from tasker.step_handler import inputs, step_handler


@step_handler("plain")
def plain():
    return {"done": True}


@step_handler("collect")
@inputs("values")
def collect(values):
    return {"values": values}


@step_handler("work")
@inputs("item", "calls")
def work(item, calls):
    with Path(calls).open("a") as file:
        file.write(f"{item}\\n")
    if item == "bad":
        raise PermanentError("a bad item")
    if item == "flaky" and Path(calls).read_text().count("flaky") < 2:
        raise ConnectionError("not yet")
    if item == "never":
        raise ConnectionError("never")
    return {"item": item}
"""
TEMPLATE = """
name: repaired
namespace: conditions
version: 1.0.0
identity_strategy: always_unique
input_schema:
  type: object
  required: [amount, items, calls]
  properties: {amount: {type: number}, items: {type: array}, calls: {type: string}}
steps:
  - {name: start, handler: plain}
  - {name: pay, handler: plain, dependencies: [start], when: "input.items[0] != 0 && input.amount > 1.0"}
  - name: work
    handler: work
    dependencies: [start]
    for_each: {in: input.items, batch_size: SIZE, on_error: ERROR}
    inputs: {item: "${item}", calls: "${input.calls}"}
    retry: {max_attempts: 2, backoff: none}
  - name: end
    type: deferred_convergence
    handler: collect
    dependencies: [pay, work]
    inputs: {values: "${[has(steps.pay), steps.work]}"}
"""


class Flow:
    """The workflow in a folder, with the file that notes each call for an item."""

    def __init__(self, folder: Path, size: int = 1, on_error: str = "fail") -> None:
        text = TEMPLATE.replace("SIZE", str(size)).replace("ERROR", on_error)
        self.workflow = write_workflow(folder / "flow", text, HANDLERS)
        self.file = folder / "calls"

    def values(self, items: list[Any], amount: int = 2) -> dict[str, Any]:
        return {"items": items, "amount": amount, "calls": str(self.file)}

    @property
    def calls(self) -> list[str]:
        return self.file.read_text().split()


async def test_retry_of_a_batch_goes_on_behind_the_items_that_are_done(database_url: str, tmp_path: Path) -> None:
    flow = Flow(tmp_path, size=4)
    async with tasker.App(database_url) as app:
        report = await app.run(flow.workflow, flow.values(["a", "b", "flaky", "c"]))
    assert report.succeeded, report
    assert flow.calls == ["a", "b", "flaky", "flaky", "c"]
    assert report.results["end"]["values"][1] == [{"item": item} for item in ("a", "b", "flaky", "c")]
    assert report.steps["work_001"].attempts == 2


@pytest.mark.parametrize(("seconds", "saves"), [(1000.0, 0), (0.0, 3)])
async def test_batch_saves_its_position_as_often_as_time_passes(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, saves: int
) -> None:
    monkeypatch.setattr(evaluated, "SAVE_EVERY_SECONDS", seconds)
    saved = count_calls(monkeypatch, FencedWrites, "save")
    async with tasker.App(database_url) as app:
        flow = Flow(tmp_path, size=4)
        report = await app.run(flow.workflow, flow.values(["a", "b", "c", "d"]))
    assert report.results["end"]["values"][1] == [{"item": item} for item in "abcd"]
    assert len(saved) == saves


async def test_list_is_evaluated_once_for_all_instances_of_a_process(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluations = count_calls(monkeypatch, evaluated_steps, "_items")
    async with tasker.App(database_url) as app:
        flow = Flow(tmp_path)
        report = await app.run(flow.workflow, flow.values([str(number) for number in range(6)]))
    assert report.succeeded, report
    assert len(evaluations) == 2  # the number of instances, and the items of all of them


def count_calls(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[str]:
    """Return a list that grows with each call of the function."""
    calls, function = list[str](), getattr(owner, name)

    def counted(*args: Any, **more: Any) -> Any:
        calls.append(name)
        return function(*args, **more)

    monkeypatch.setattr(owner, name, counted)
    return calls


async def test_failure_is_collected_only_when_its_attempts_are_used_up(database_url: str, tmp_path: Path) -> None:
    flow = Flow(tmp_path, on_error="collect")
    async with tasker.App(database_url) as app:
        report = await app.run(flow.workflow, flow.values(["never", "flaky"]))
    assert report.succeeded, report
    never, flaky = report.results["end"]["values"][1]
    assert (never["ok"], never["error"]["message"], flow.calls.count("never")) == (False, "never", 2)
    assert (flaky, flow.calls.count("flaky")) == ({"ok": True, "result": {"item": "flaky"}}, 2)


async def test_convergence_goes_on_without_the_item_that_an_operator_resolved(
    database_url: str, tmp_path: Path
) -> None:
    flow = Flow(tmp_path)
    async with tasker.App(database_url) as app:
        report = await app.run(flow.workflow, flow.values(["a", "bad", "c"]))
        assert report.status == "error"
        assert "end" not in report.results
        await app.steps.resolve(report.task_uuid, "work_002", **BY)
        report = await app.wait(report.task_uuid, timeout=60)
    assert report.succeeded, report
    assert report.results["end"]["values"] == [True, [{"item": "a"}, {"item": "c"}]]


async def test_result_of_an_operator_takes_the_place_of_the_failed_item(database_url: str, tmp_path: Path) -> None:
    flow = Flow(tmp_path)
    async with tasker.App(database_url) as app:
        report = await app.run(flow.workflow, flow.values(["a", "bad", "c"]))
        await app.steps.complete(report.task_uuid, "work_002", {"results": [{"item": "by hand"}]}, **BY)
        report = await app.wait(report.task_uuid, timeout=60)
    assert report.results["end"]["values"][1] == [{"item": item} for item in ("a", "by hand", "c")]


async def test_condition_that_failed_is_decided_by_an_operator(database_url: str, tmp_path: Path) -> None:
    flow = Flow(tmp_path)
    async with tasker.App(database_url) as app:
        first = await app.run(flow.workflow, flow.values([]))
        second = await app.run(flow.workflow, flow.values([]))
        assert {first.status, second.status} == {"error"}
        assert "end" not in first.steps
        await app.steps.resolve(first.task_uuid, "pay.when", **BY)
        taken = {"decision_point_outcome": {"type": "create_steps", "step_names": ["pay"]}}
        await app.steps.complete(second.task_uuid, "pay.when", taken, **BY)
        first = await app.wait(first.task_uuid, timeout=60)
        second = await app.wait(second.task_uuid, timeout=60)
    assert first.results["end"] == {"values": [False, []]}
    assert second.results["end"] == {"values": [True, []]}


async def test_rerun_decides_conditions_and_lists_anew(database_url: str, tmp_path: Path) -> None:
    flow = Flow(tmp_path)
    async with tasker.App(database_url) as app:
        first = await app.run(flow.workflow, flow.values(["a"]))
        begun = await app.reruns.start(first.task_uuid, "start", context=flow.values(["a", "b"], amount=0), **BY)
        again = await app.wait(begun.task_uuid, timeout=60)
        begun = await app.reruns.start(again.task_uuid, "work_002", **BY)
        last = await app.wait(begun.task_uuid, timeout=60)
    assert first.results["end"] == {"values": [True, [{"item": "a"}]]}
    assert again.results["end"] == {"values": [False, [{"item": "a"}, {"item": "b"}]]}
    assert last.results["end"] == again.results["end"]
    assert {step.name for step in last.steps.values() if step.attempts} == {"work_002", "end"}
    assert last.steps["pay.when"].reused_from == again.task_uuid


SENSITIVE = """
name: sensitive
namespace: conditions
version: 1.0.0
input_schema: {type: object, required: [items], properties: {items: {type: array}}}
steps:
  - name: work
    handler: token
    execution: {mode: process}
    for_each: {in: input.items, batch_size: 2, on_error: collect}
    retry: {max_attempts: 1}
    result_schema:
      type: object
      required: [token]
      properties: {token: {$ref: "#/$defs/secret"}}
      $defs: {secret: {type: string, x-sensitive: true}}
  - name: end
    type: deferred_convergence
    handler: plain
    dependencies: [work]
"""
TOKEN = """

@step_handler("token")
@inputs("item")
def token(item):
    return {"token": item} if item else {}
"""


def test_results_of_items_are_validated_and_redacted_one_by_one(database_url: str, tmp_path: Path) -> None:
    workflow = write_workflow(tmp_path / "flow", SENSITIVE, HANDLERS + TOKEN)
    with tasker.SyncApp(database_url) as app:
        report = app.run(workflow, {"items": ["s3cr3t-a", "", "s3cr3t-b"]}, timeout=60)
    assert report.succeeded, report
    first, missing = report.results["work_001"]["results"]
    assert first == {"ok": True, "result": {"token": "s3cr3t-a"}}
    assert (missing["ok"], missing["error"]["type"]) == (False, "result_schema_violation")
    shown = invoke("task", "show", report.task_uuid, "--all", database=database_url).stdout
    assert "work_002" in shown
    assert "s3cr3t" not in shown.partition("results")[2]


YIELDS = """
name: yields
namespace: conditions
version: 1.0.0
identity_strategy: always_unique
steps:
  - {name: work, handler: yields, for_each: {in: input.items, batch_size: 3}}
"""
YIELDING = """

from tasker.step_handler import checkpoint_yield


@step_handler("yields")
def yields():
    checkpoint_yield(1, 1)
"""


@pytest.mark.parametrize("items", [[1], [1, 2]])
def test_checkpoint_of_a_handler_fails_a_batch_of_any_length(
    database_url: str, tmp_path: Path, items: list[int]
) -> None:
    workflow = write_workflow(tmp_path / "flow", YIELDS, HANDLERS + YIELDING)
    with tasker.SyncApp(database_url) as app:
        report = app.run(workflow, {"items": items}, timeout=10)
    (failure,) = report.steps["work_001"].failures
    assert failure["error_type"] == "checkpoint_in_batch"
