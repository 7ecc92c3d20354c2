"""Compensations as a program sees them: what their handlers read, operator actions, lists and reruns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tasker
from tasker.errors import StateMachineError
from tests.support.command_line import invoke, write_workflow

HANDLERS = """
from tasker.step_handler import step_handler
from tasker.errors import PermanentError


@step_handler("books")
def books(context):
    return {"booked": context.get_input("what")}


@step_handler("pays")
def pays(context):
    if context.get_input("poor"):
        raise PermanentError("no money")
    return {}


@step_handler("undoes")
def undoes(context):
    booked = context.get_dependency_field(context.step_name.removesuffix(".undo"), "booked")
    return {"undone": booked, "input": context.input_data, "why": context.outcome.failures[0].message}
"""
FLOW = """
name: NAME
namespace: sagas
version: 1.0.0
TOP
steps:
  - {name: flight, handler: books, inputs: {what: flight}, compensate: undoes}
  - {name: hotel, handler: books, inputs: {what: hotel}, dependencies: [flight], compensate: undoes}
  - {name: pay, handler: pays, dependencies: [hotel]}
"""
BY = {"actor": "ada", "reason": "try again"}


@pytest.fixture
def app(module_database_url: str) -> Iterator[tasker.SyncApp]:
    with tasker.SyncApp(module_database_url) as running:
        yield running


def run(app: tasker.SyncApp, folder: Path, top: str = "on_failure: compensate", **context: Any) -> Any:
    flow = FLOW.replace("NAME", folder.name.replace("_", "-")).replace("TOP", top)
    return app.run(write_workflow(folder / "flow", flow, HANDLERS), context, timeout=60)


def test_compensation_reads_what_it_undoes_and_why(
    app: tasker.SyncApp, tmp_path: Path, module_database_url: str
) -> None:
    report = run(app, tmp_path, poor=True)

    assert report.results["hotel.undo"] == {"undone": "hotel", "input": {"what": "hotel"}, "why": "no money"}
    assert report.results["flight.undo"]["undone"] == "flight"
    assert (report.status, report.outcome) == ("error", "compensated")
    listed = app.tasks.list(outcome="compensated", template=tmp_path.name.replace("_", "-"))
    assert [each.task_uuid for each in listed] == [report.task_uuid]
    assert "outcome   compensated" in invoke("task", "show", report.task_uuid, database=module_database_url).stdout


def test_nobody_is_asked_to_repair_a_step_of_a_task_whose_effects_are_undone(
    app: tasker.SyncApp, tmp_path: Path
) -> None:
    report = run(app, tmp_path, poor=True)
    reasons = app.tasks.explain(report.task_uuid, "pay").reasons
    assert [(reason.reason, reason.needs_somebody) for reason in reasons] == [("undone", False)]

    report = run(app, tmp_path, poor=False)
    (reason,) = app.tasks.explain(report.task_uuid, "flight.undo").reasons
    assert "runs when the other steps have come to rest" in reason.sentence()


def test_steps_of_a_compensated_task_are_not_reset_but_rerun(app: tasker.SyncApp, tmp_path: Path) -> None:
    task = run(app, tmp_path, poor=True).task_uuid

    with pytest.raises(StateMachineError, match="are undone") as refused:
        app.steps.reset(task, "pay", **BY)
    assert "tasker task rerun" in (refused.value.hint or "")
    assert app.steps.retry(task, **BY).reset == ()

    again = app.wait(app.reruns.start(task, "pay", **BY, changes={"poor": False}).task_uuid, timeout=60)
    assert {name: step.attempts for name, step in again.steps.items()} == {"flight": 1, "hotel": 1, "pay": 1}
    assert (again.status, again.outcome) == ("complete", None)


def test_operator_compensates_a_task_that_failed(app: tasker.SyncApp, tmp_path: Path, module_database_url: str) -> None:
    report = run(app, tmp_path, top="", poor=True)
    assert (report.status, report.outcome) == ("error", None)

    shown = invoke("task", "compensate", report.task_uuid, "--reason", "give up", database=module_database_url)
    assert shown.stdout.startswith(f"compensating {report.task_uuid}")
    report = app.wait(report.task_uuid, timeout=60)

    assert (report.status, report.outcome) == ("error", "compensated")
    with pytest.raises(StateMachineError, match="is compensated"):
        app.tasks.compensate(report.task_uuid)


def test_only_a_task_that_failed_is_compensated(app: tasker.SyncApp, tmp_path: Path) -> None:
    report = run(app, tmp_path)

    with pytest.raises(StateMachineError, match="is complete: only a task that failed") as refused:
        app.tasks.compensate(report.task_uuid)
    assert "--compensate" in (refused.value.hint or "")
