"""Tasks that go on after a failure, as a program sees them: what handlers read, what is listed and explained."""

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


@step_handler("fails")
def fails(context):
    raise PermanentError("no stock", error_code="out_of_stock")


@step_handler("sees")
def sees(context):
    failed = context.failed("first")
    if failed is None:
        return {"failed": None, "handled": None}
    handled = context.failure
    return {"failed": [failed.error_type, failed.error_code, failed.message], "handled": handled and handled.step}
"""
HEAD = "name: flow\nnamespace: failing\nversion: 1.0.0\nsteps:\n"
BY = {"actor": "ada", "reason": "try again"}


@pytest.fixture
def app(module_database_url: str) -> Iterator[tasker.SyncApp]:
    with tasker.SyncApp(module_database_url) as running:
        yield running


def run(app: tasker.SyncApp, folder: Path, steps: str) -> Any:
    """Run a template with the name of the test's folder."""
    name = folder.name.replace("_", "-")
    workflow = write_workflow(folder / "flow", HEAD.replace("name: flow", f"name: {name}") + steps, HANDLERS)
    return app.run(workflow, timeout=60)


CONTINUED = """
  - {name: first, handler: fails, on_failure: continue}
  - {name: second, handler: sees, dependencies: [first]}
"""


def test_dependent_reads_why_its_parent_failed(app: tasker.SyncApp, tmp_path: Path) -> None:
    report = run(app, tmp_path, CONTINUED)

    assert report.results == {"second": {"failed": ["permanent_error", "out_of_stock", "no stock"], "handled": None}}
    assert (report.status, report.outcome, report.error) == ("complete", "partial", None)
    assert [(step.name, step.settled) for step in report.missing_steps] == [("first", "continue")]


def test_failure_branch_reads_what_it_handles(app: tasker.SyncApp, tmp_path: Path) -> None:
    steps = """
  - {name: first, handler: fails, on_failure: {run: undo}}
  - {name: second, handler: sees, dependencies: [first]}
  - {name: undo, handler: sees}
"""
    report = run(app, tmp_path, steps)

    assert report.results == {"undo": {"failed": ["permanent_error", "out_of_stock", "no stock"], "handled": "first"}}
    assert report.steps["second"].settled == "skipped"


@pytest.mark.parametrize(
    ("first", "ends"),
    [("sees", ["first", "ship"]), ("fails", ["first", "ship", "undo"])],
    ids=["no-failure", "failure"],
)
def test_report_of_a_convergence_lists_a_failure_branch_that_exists(
    app: tasker.SyncApp, tmp_path: Path, first: str, ends: list[str]
) -> None:
    steps = f"""
  - {{name: first, handler: {first}, on_failure: {{run: undo}}}}
  - {{name: ship, handler: sees, dependencies: [first]}}
  - {{name: undo, handler: sees}}
  - {{name: close, type: deferred_convergence, handler: sees, dependencies: [ship, undo]}}
"""
    report = run(app, tmp_path, steps)

    assert report.status == "complete"
    assert list(report.steps["close"].depends_on) == ends
    assert list(app.tasks.report(report.task_uuid).steps["close"].depends_on) == ends


def test_partial_tasks_are_listed_and_explained(app: tasker.SyncApp, tmp_path: Path, module_database_url: str) -> None:
    steps = """
  - {name: first, handler: fails, on_failure: skip_cascade}
  - {name: second, handler: sees, dependencies: [first]}
"""
    task = run(app, tmp_path, steps).task_uuid

    listed = app.tasks.list(outcome="partial", template=tmp_path.name.replace("_", "-"))
    assert [(each.task_uuid, each.outcome) for each in listed] == [(task, "partial")]
    (skipped,) = app.tasks.explain(task, "second").reasons
    assert (skipped.reason, "first failed" in skipped.sentence()) == ("skipped", True)
    (tolerated,) = app.tasks.explain(task, "first").reasons
    assert "the task went on without it" in tolerated.sentence()
    shown = invoke("task", "show", task, database=module_database_url).stdout
    assert "outcome   partial, without first, second" in shown


def test_settled_step_is_not_reset_but_rerun(app: tasker.SyncApp, tmp_path: Path) -> None:
    task = run(app, tmp_path, CONTINUED).task_uuid

    with pytest.raises(StateMachineError, match="went on without step 'first'") as refused:
        app.steps.reset(task, "first", **BY)
    assert "tasker task rerun" in (refused.value.hint or "")
    with pytest.raises(StateMachineError, match="went on without step 'first'"):
        app.steps.resolve(task, "first", **BY)

    again = app.wait(app.reruns.start(task, "first", **BY).task_uuid, timeout=60)
    assert {name: step.attempts for name, step in again.steps.items()} == {"first": 1, "second": 1}
    assert again.outcome == "partial"


def test_retries_end_before_the_task_goes_on(app: tasker.SyncApp, tmp_path: Path) -> None:
    handlers = (
        HANDLERS
        + """

@step_handler("breaks")
def breaks(context):
    raise RuntimeError("broken")
"""
    )
    steps = """
  - {name: first, handler: breaks, optional: true, retry: {max_attempts: 3, backoff: none}}
  - {name: second, handler: sees, dependencies: [first]}
"""
    workflow = write_workflow(tmp_path / "flow", HEAD.replace("name: flow", "name: retries") + steps, handlers)
    report = app.run(workflow, timeout=60)

    assert report.steps["first"].attempts == 3
    assert (report.status, report.outcome, report.steps["second"].attempts) == ("complete", None, 1)
