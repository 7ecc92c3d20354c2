"""Steps of `finally` as a program sees them: what their handlers read, and what is shown of their task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tasker
from tests.support.command_line import write_workflow

HANDLERS = """
from tasker.step_handler import step_handler
from tasker.errors import PermanentError


@step_handler("books")
def books(context):
    if context.get_input("fails"):
        raise PermanentError("no seats", error_code="sold_out")
    return {"booked": 7}


@step_handler("reports")
def reports(context):
    outcome = context.outcome
    failures = [[each.step, each.error_type, each.error_code, each.message] for each in outcome.failures]
    return {"state": outcome.state, "failures": failures, "booked": context.get_dependency_field("book", "booked")}


@step_handler("pays")
def pays(context):
    return {"outcome": context.outcome}
"""
FLOW = """
name: NAME
namespace: finals
version: 1.0.0
finally: [report]
steps:
  - {name: book, handler: books}
  - {name: pay, handler: pays, dependencies: [book]}
  - {name: report, handler: reports}
"""


@pytest.fixture
def app(module_database_url: str) -> Iterator[tasker.SyncApp]:
    with tasker.SyncApp(module_database_url) as running:
        yield running


def run(app: tasker.SyncApp, folder: Path, **context: Any) -> Any:
    flow = FLOW.replace("NAME", folder.name.replace("_", "-"))
    return app.run(write_workflow(folder / "flow", flow, HANDLERS), context, timeout=60)


def test_last_step_reads_the_results_of_a_task_that_is_complete(app: tasker.SyncApp, tmp_path: Path) -> None:
    report = run(app, tmp_path)

    assert report.results["report"] == {"state": "complete", "failures": [], "booked": 7}
    assert report.results["pay"] == {"outcome": None}
    assert report.status == "complete"


def test_last_step_reads_the_failures_of_its_task(app: tasker.SyncApp, tmp_path: Path) -> None:
    report = run(app, tmp_path, fails=True)

    failures = [["book", "permanent_error", "sold_out", "no seats"]]
    assert report.results["report"] == {"state": "error", "failures": failures, "booked": None}
    assert report.status == "error"


def test_task_reruns_from_its_last_step(app: tasker.SyncApp, tmp_path: Path) -> None:
    task = run(app, tmp_path).task_uuid

    again = app.wait(app.reruns.start(task, "report", actor="ada", reason="again").task_uuid, timeout=60)

    assert {name: step.attempts for name, step in again.steps.items()} == {"book": 0, "pay": 0, "report": 1}
    assert again.status == "complete"
