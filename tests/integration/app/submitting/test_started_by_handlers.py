"""`context.submit`: handlers start tasks without an app of their own, in a thread, on the loop, in a child process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tasker
from tasker.template import compile_text
from tests.support.command_line import write_workflow

WORKFLOW = """
name: parent
namespace: NAMESPACE
version: 1.0.0
steps:
  - name: start
    handler: HANDLER
    execution: {mode: MODE}
    retry: {max_attempts: 2, backoff: none}
"""
CHILD = """
name: child
namespace: NAMESPACE
version: 1.0.0
input_schema: {type: object, properties: {n: {type: integer}}}
steps:
  - {name: grow, handler: nobody.serves_it}
"""
HANDLERS = """
from tasker.errors import InputInvalid, RetryableError, TemplateNotFound, UsageError
from tasker.step_handler import step_handler


def refusals(calls):
    seen = []
    for call, expected in calls:
        try:
            call()
        except expected as error:
            seen.append(str(error))
    return seen


@step_handler("blocking")
def blocking(context):
    child = f"{context.namespace}/child"
    one, two = context.submit(child, {"n": 1}), context.submit(child, {"n": 1}, key="two", priority="high")
    if not context.is_retry():
        raise RetryableError("again")
    seen = refusals([
        (lambda: context.submit(child, {"n": "x"}), InputInvalid),
        (lambda: context.submit("nowhere/nothing"), TemplateNotFound),
        (lambda: context.submit(child, {}, prio=1), UsageError),
        (lambda: context.submit(child, {}, key=" "), UsageError),
    ])
    return {"tasks": [one.task_uuid, two.task_uuid], "created": [one.created, two.created], "refused": len(seen)}


@step_handler("on_loop")
async def on_loop(context):
    child = f"{context.namespace}/child"
    one = await context.submit_async(child, {"n": 1})
    two = await context.submit_async(child, {"n": 1}, key="two")
    if not context.is_retry():
        raise RetryableError("again")
    seen = refusals([(lambda: context.submit(child), UsageError)])
    return {"tasks": [one.task_uuid, two.task_uuid], "created": [one.created, two.created], "refused": len(seen) + 3}
"""


@pytest.fixture
def app(module_database_url: str) -> Iterator[tasker.SyncApp]:
    with tasker.SyncApp(module_database_url) as running:
        yield running


def child_of(app: tasker.SyncApp, namespace: str) -> None:
    (plan,) = compile_text(CHILD.replace("NAMESPACE", namespace)).plans
    app.plans.register(plan, force=True)


@pytest.mark.parametrize(
    ("handler", "mode"), [("blocking", "thread"), ("on_loop", "async"), ("blocking", "process"), ("on_loop", "process")]
)
def test_a_handler_starts_tasks_once_over_its_attempts(
    app: tasker.SyncApp, tmp_path: Path, handler: str, mode: str
) -> None:
    namespace = f"{mode}-{handler}".replace("_", "-")
    child_of(app, namespace)
    text = WORKFLOW.replace("HANDLER", handler).replace("MODE", mode).replace("NAMESPACE", namespace)

    report = app.run(write_workflow(tmp_path / "flow", text, HANDLERS), timeout=60)

    result: Any = report.results["start"]
    assert (result["created"], result["refused"]) == ([False, False], 4)
    family = app.children(report.task_uuid)
    assert sorted(child.task_uuid for child in family.children) == sorted(result["tasks"])
    assert len(set(result["tasks"])) == 2
