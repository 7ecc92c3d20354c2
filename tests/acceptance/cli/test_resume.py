"""A run that is interrupted, killed or out of time goes on where it was."""

from __future__ import annotations

import json
import shutil
import signal
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.command_line import HOLDING, Running, invoke, run_json, write_workflow

pytestmark = pytest.mark.slow

TEMPLATE = """
    name: holding
    namespace: holding
    version: 1.0.0
    steps:
      - {name: begin, handler: begin}
      - {name: hold, dependencies: [begin], handler: hold, retry: {backoff: fixed, backoff_base_ms: 1}}
      - {name: end, dependencies: [hold], handler: end}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_workflow(tmp_path / "holding", TEMPLATE, HOLDING)


def started(*arguments: str | Path) -> tuple[Running, str]:
    """A run that has come to its step `hold`, and its task."""
    run = Running.start("run", *arguments)
    task = run.task_uuid()
    run.wait_for("hold: ▶ in_progress")
    return run, task


def in_own_namespace(template: str) -> str:
    """The embedded database is shared by all tests: nobody else may take these steps."""
    return template.replace("namespace: holding", f"namespace: n{uuid4().hex[:20]}")


def attempts(found: dict[str, Any]) -> dict[str, int]:
    return {step["name"]: step["attempts"] for step in found["steps"]}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_gives_its_steps_back_and_can_be_resumed(
    number: int, folder: Path, database_url: str
) -> None:
    run, task = started(folder, "--json", "--database-url", database_url)
    run.signal(number)
    code, output = run.end()

    assert code == 130
    assert json.loads(output)["error"]["type"] == "interrupted"
    assert f"tasker run --resume {task} --database-url" in run.told

    (folder / "go").touch()
    found = run_json("--resume", task, database=database_url)

    assert found["task_uuid"] == task
    assert found["status"] == "complete"
    assert attempts(found) == {"begin": 1, "hold": 1, "end": 1}


def test_a_run_that_is_out_of_time_fails_and_can_be_resumed_by_the_beginning_of_its_name(
    folder: Path, database_url: str
) -> None:
    result = invoke("run", folder, "--timeout", "0.2", "--json", database=database_url)
    found = json.loads(result.stdout)

    assert result.exit_code == 1
    assert found["error"]["type"] == "timeout"

    (folder / "go").touch()
    resumed = run_json("--resume", found["task_uuid"][:24], database=database_url)

    assert (resumed["task_uuid"], resumed["status"]) == (found["task_uuid"], "complete")


def test_the_second_signal_ends_the_process_at_once(folder: Path, database_url: str) -> None:
    text = (
        HOLDING.replace("await asyncio.Event().wait()", "await stubborn()")
        + """

    async def stubborn():
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                print("still here", flush=True)
    """
    )
    write_workflow(folder, TEMPLATE, text)
    run, task = started(folder, "--json", "--database-url", database_url)
    run.signal(signal.SIGINT)
    run.wait_for("stopping")
    run.signal(signal.SIGINT)

    code, output = run.end()

    assert (code, output) == (130, "")
    assert f"Quit. To resume: tasker run --resume {task}" in run.told


def test_a_killed_run_is_resumed_and_its_lost_attempt_is_in_the_history(folder: Path, embedded_folder: Path) -> None:
    write_workflow(folder, in_own_namespace(TEMPLATE), HOLDING)
    run, task = started(folder, "--json", "--data-dir", embedded_folder)
    run.signal(signal.SIGKILL)
    run.end()

    (folder / "go").touch()
    again = Running.start("run", "--resume", task, "--json", "--data-dir", embedded_folder)
    code, output = again.end()
    found = json.loads(output)

    assert code == 0, again.told
    assert attempts(found) == {"begin": 1, "hold": 2, "end": 1}
    history = invoke("task", "history", task, "--format", "json", "--data-dir", embedded_folder)
    reasons = Counter(
        (row["metadata"] or {}).get("reason") for row in json.loads(history.stdout) if row["step"] == "hold"
    )
    assert reasons["worker_lost"] > 0


def test_a_step_that_may_run_once_and_was_lost_ends_in_error_and_says_why(folder: Path, embedded_folder: Path) -> None:
    write_workflow(
        folder, in_own_namespace(TEMPLATE).replace("{name: hold,", "{name: hold, on_worker_lost: fail,"), HOLDING
    )
    run, task = started(folder, "--json", "--data-dir", embedded_folder)
    run.signal(signal.SIGKILL)
    run.end()

    (folder / "go").touch()
    again = Running.start("run", "--resume", task, "--json", "--data-dir", embedded_folder)
    code, output = again.end()

    error = json.loads(output)["error"]
    assert code == 1, again.told
    assert (error["step"], error["type"]) == ("hold", "worker_lost")
    assert "may run only once" in error["message"]


def test_a_task_that_has_ended_says_so_and_ends_by_its_outcome(folder: Path, database_url: str) -> None:
    (folder / "go").touch()
    task = run_json(folder, database=database_url)["task_uuid"]

    result = invoke("run", "--resume", task, database=database_url)

    assert result.exit_code == 0
    assert f"task {task} has ended" in result.stdout
    assert '{"text": "the end"}' in result.stdout


def test_handlers_that_have_moved_can_be_named(folder: Path, database_url: str) -> None:
    task = json.loads(invoke("run", folder, "--timeout", "0.2", "--json", database=database_url).stdout)["task_uuid"]
    moved = folder.with_name("moved")
    shutil.move(folder, moved)
    (moved / "go").touch()

    lost = invoke("run", "--resume", task, database=database_url)
    above = folder.with_name("above")
    above.mkdir()
    shutil.move(moved, above)
    found = invoke("run", above, "--resume", task, database=database_url)
    again = invoke("run", above / "moved", "--resume", task, database=database_url)

    assert "has ended" in again.stdout, again.output
    assert lost.exit_code == 2
    assert f"{folder}, where it was submitted, no longer exists" in lost.stderr
    assert f"tasker run FOLDER --resume {task}" in lost.stderr
    assert found.exit_code == 0, found.output


def test_handlers_of_a_resumed_task_are_those_of_its_template(tmp_path: Path, database_url: str) -> None:
    step = "name: same\nnamespace: {}\nversion: 1.0.0\nsteps: [{{name: say, handler: say}}]\n"
    handler = (
        "from tasker.step_handler import step_handler\n\n@step_handler('say')\ndef say():\n    return {{'of': '{}'}}\n"
    )
    for namespace in ("first", "second"):
        write_workflow(tmp_path / "all" / namespace, step.format(namespace), handler.format(namespace))
    (tmp_path / "empty").mkdir()
    invoke("template", "register", tmp_path / "all", database=database_url)
    submit = ("task", "submit", "second/same", "--idempotency-key")

    first = invoke(*submit, "a", database=database_url).stdout.strip()
    beside = run_json(tmp_path / "all", "--resume", first, database=database_url)
    second = invoke(*submit, "b", database=database_url).stdout.strip()  # which the run before would have taken along
    named = ("--resume", second, "--handlers", tmp_path / "all" / "second")
    elsewhere = run_json(tmp_path / "empty", *named, database=database_url)

    assert [found["steps"][0]["result"] for found in (beside, elsewhere)] == [{"of": "second"}] * 2
