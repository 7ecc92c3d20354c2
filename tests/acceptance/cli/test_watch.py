"""`tasker task watch`: following a task that others run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.acceptance.examples.workflow_case import WORKFLOWS
from tests.support.command_line import invoke, run_json

LINEAR = WORKFLOWS / "linear_math"


@pytest.fixture
def waiting(database_url: str) -> str:
    """A task that nobody runs."""
    invoke("template", "register", LINEAR, database=database_url)
    arguments = ("task", "submit", "linear/linear_workflow", "--set", "value=1", "--set", "divisor=2")
    return invoke(*arguments, database=database_url).stdout.strip()


@contextmanager
def watching(task: str, database_url: str) -> Iterator[subprocess.Popen[str]]:
    """A process that watches and has begun to."""
    command = [
        sys.executable,
        "-m",
        "tasker",
        "task",
        "watch",
        task,
        "--format",
        "json",
        "--database-url",
        database_url,
    ]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}) as process:
        try:
            assert process.stdout
            assert json.loads(process.stdout.readline())["task_uuid"] == task
            yield process
        finally:
            process.kill()


def state(task: str, database_url: str) -> str:
    return str(json.loads(invoke("task", "show", task, "--format", "json", database=database_url).stdout)["status"])


@pytest.mark.slow
def test_the_end_of_a_task_that_another_process_runs_ends_the_watch(waiting: str, database_url: str) -> None:
    with watching(waiting, database_url) as process:
        assert run_json(LINEAR, "--resume", waiting, database=database_url)["status"] == "complete"
        output, errors = process.communicate()

    rows: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines()]
    assert process.returncode == 0, errors
    assert (rows[-1]["kind"], rows[-1]["status"], rows[-1]["finished"]) == ("task", "complete", True)
    ended = {row["name"]: row for row in rows if row["kind"] == "step" and row["state"] == "complete"}
    assert list(ended) == [f"mathematical_{name}" for name in ("add", "multiply", "subtract", "divide")]
    shown = json.loads(invoke("task", "show", waiting, "--format", "json", database=database_url).stdout)["steps"]
    history = json.loads(invoke("task", "history", waiting, "--format", "json", database=database_url).stdout)
    took = {row["step"]: row["execution_time_ms"] for row in history if row["step"] and row["to_state"] == "complete"}
    assert {name: row["duration_ms"] for name, row in ended.items()} == took, "one step, one duration"
    assert {step["name"]: step["duration_ms"] for step in shown} == took


@pytest.mark.slow
def test_ctrl_c_ends_the_watch_and_leaves_the_task_alone(waiting: str, database_url: str) -> None:
    with watching(waiting, database_url) as process:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()

    assert process.returncode == 130
    assert "Traceback" not in errors
    assert f"the task continues. To watch it again:\n  tasker task watch {waiting} --database-url" in errors
    assert state(waiting, database_url) == "steps_in_process"


def test_a_watch_ends_when_its_time_is_up(waiting: str, database_url: str) -> None:
    result = invoke("task", "watch", waiting, "--timeout", "0.2", database=database_url)

    assert result.exit_code == 1
    assert (
        f"Not ended after 0.2 s; the task continues. To watch it again:\n  tasker task watch {waiting}" in result.stderr
    )
    assert state(waiting, database_url) == "steps_in_process"


@pytest.mark.parametrize(("divisor", "code"), [(2, 0), (0, 1)])
def test_a_task_that_has_ended_is_shown_as_lines_with_its_outcome(divisor: int, code: int, database_url: str) -> None:
    task = str(run_json(LINEAR, "--set", f"divisor={divisor}", database=database_url)["task_uuid"])

    result = invoke("task", "watch", task[:24], database=database_url)

    assert result.exit_code == code
    lines = [line.split("  ")[1] for line in result.stdout.splitlines() if "mathematical_add: " in line]
    assert lines == ["mathematical_add: ✔ complete"]
    assert ("3 of 4 steps complete" in result.stdout) == bool(code)
    assert (f"tasker task watch {task}" in result.stdout) == bool(code), "where to go on after a failure"
