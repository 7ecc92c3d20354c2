"""A task that an operator's action ends is told to plugins and to who waits, like one that a step ended."""

from __future__ import annotations

from pathlib import Path

import pytest

import tasker
from tasker.app import lifecycle
from tasker.plugins.hook_arguments import TaskClosed, TaskFinished
from tasker.plugins.host import PluginHost

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
HELD = """
name: held
namespace_name: held
version: 1.0.0
steps: [{name: only, handler: {callable: nobody_has_it}}]
"""


async def test_plugins_hear_of_tasks_that_a_program_cancels_or_completes(
    module_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[TaskFinished] = []
    closed: list[TaskClosed] = []
    plugins = PluginHost({"watcher": {"tasker_task_finished": heard.append, "tasker_tasks_closed": closed.extend}})
    monkeypatch.setattr(lifecycle, "plugins_of", lambda choice: plugins)
    (tmp_path / "held.yaml").write_text(HELD)
    async with tasker.App(module_database_url, work=False) as app:
        target, trace = tmp_path / "held.yaml", {"traceparent": CALLER, "tracestate": "vendor=1"}
        cancelled, completed, resolved = [(await app.submit(target, {"n": n}, **trace)).task_uuid for n in "abc"]
        await app.tasks.cancel(cancelled, actor="operator", reason="not needed")
        await app.steps.complete(completed, "only", {}, actor="operator", reason="done by hand")
        await app.steps.resolve(resolved, "only", actor="operator", reason="not needed")
        for task in (cancelled, completed, resolved):
            await app.finished(task, timeout=60)
        reports = [await app.tasks.report(task) for task in (cancelled, completed, resolved)]

    assert heard == [
        TaskFinished(cancelled, "cancelled"),
        TaskFinished(completed, "complete"),
        TaskFinished(resolved, "complete"),
    ]
    assert [(each.task_uuid, each.state) for each in closed] == [(each.task_uuid, each.state) for each in heard]
    assert [each.correlation_id for each in closed] == [report.correlation_id for report in reports]
    assert [each.ended_at for each in closed] == [report.completed_at for report in reports]
    assert {(each.namespace, each.template, each.traceparent, each.tracestate) for each in closed} == {
        ("held", "held", CALLER, "vendor=1")
    }
