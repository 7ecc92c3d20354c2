"""A task that an operator's action ends is told to plugins and to who waits, like one that a step ended."""

from __future__ import annotations

from pathlib import Path

import pytest

import tasker
from tasker.app.embedded import lifecycle
from tasker.contracts.hook_arguments import TaskFinished
from tasker.plugins.process import Plugins

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
    plugins = Plugins({"watcher": {"tasker_task_finished": heard.append}})
    monkeypatch.setattr(lifecycle, "plugins_of", lambda choice: plugins)
    (tmp_path / "held.yaml").write_text(HELD)
    async with tasker.App(module_database_url, work=False) as app:
        cancelled, completed, resolved = [(await app.submit(tmp_path / "held.yaml", {"n": n})).task_uuid for n in "abc"]
        await app.tasks.cancel(cancelled, actor="operator", reason="not needed")
        await app.steps.complete(completed, "only", {}, actor="operator", reason="done by hand")
        await app.steps.resolve(resolved, "only", actor="operator", reason="not needed")
        for task in (cancelled, completed, resolved):
            await app.finished(task, timeout=60)

    assert heard == [
        TaskFinished(cancelled, "cancelled"),
        TaskFinished(completed, "complete"),
        TaskFinished(resolved, "complete"),
    ]
