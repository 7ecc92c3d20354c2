"""After a failure: what the command line proposes, and letting everything that failed run again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import psycopg
import pytest

from tests.support.command_line import invoke, run_json, write_workflow

TEMPLATE = """
    name: mending
    namespace: mending
    version: 1.0.0
    steps:
      - {name: good, handler: good}
      - {name: bad, handler: bad, retry: {max_attempts: 1}}
      - {name: worse, handler: bad, retry: {max_attempts: 1}}
      - {name: once, handler: once, on_worker_lost: fail, retry: {max_attempts: 1}}
      - {name: end, dependencies: [good, bad, worse, once], handler: good}
"""
HANDLERS = """
    from pathlib import Path

    from tasker.handlers.decorators import step_handler

    FOLDER = Path(__file__).parent


    @step_handler("good")
    def good():
        return {"good": True}


    @step_handler("bad")
    def bad():
        if not (FOLDER / "mended").exists():
            raise ValueError("not mended yet")
        return {"good": True}


    @step_handler("once")
    def once():
        if (FOLDER / "lose").exists():
            raise ValueError("gone")
        return {"good": True}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_workflow(tmp_path / "mending", TEMPLATE, HANDLERS)


def retry(task: str, *options: str, database: str) -> tuple[int, dict[str, object]]:
    result = invoke("task", "retry", task, "--format", "json", *options, database=database)
    return result.exit_code, json.loads(result.stdout)


def states(task: str, database: str) -> dict[str, str]:
    found = json.loads(invoke("task", "show", task, "--format", "json", database=database).stdout)
    return {step["name"]: step["state"] for step in found["steps"]}


def commands(text: str) -> list[str]:
    """The commands among the lines, as they can be copied."""
    return [line.strip() for line in text.splitlines() if line.startswith("  tasker ")]


def test_the_commands_after_a_failure_lead_to_the_end(folder: Path, database_url: str) -> None:
    failed = invoke("run", folder, database=database_url)
    show, again, resume = commands(failed.stdout)
    (folder / "mended").touch()

    assert failed.exit_code == 1
    assert 'raise ValueError("not mended yet")' in invoke(*shlex.split(show)[1:]).stdout
    assert invoke(*shlex.split(again)[1:]).exit_code == 0
    ended = invoke(*shlex.split(resume)[1:])
    assert (ended.exit_code, commands(ended.stdout)) == (0, [])


def test_one_failed_step_is_named_and_json_keeps_standard_output_to_itself(folder: Path, database_url: str) -> None:
    (folder / "mended").touch()
    (folder / "lose").touch()
    failed = invoke("run", folder, "--json", database=database_url)
    task = json.loads(failed.stdout)["task_uuid"]

    assert [line.partition(" --database-url")[0] for line in commands(failed.stderr)] == [
        f"tasker task show {task} --traceback",
        f"tasker task step reset {task} once",
        f"tasker run --resume {task}",
    ]


def test_a_cancelled_task_leads_to_its_history(folder: Path, database_url: str) -> None:
    invoke("template", "register", folder, database=database_url)
    task = invoke("task", "submit", "mending/mending", database=database_url).stdout.strip()
    invoke("task", "cancel", task, database=database_url)
    ended = invoke("task", "watch", task, database=database_url)

    assert ended.exit_code == 1
    assert [line.split()[2] for line in commands(ended.stdout)] == ["history"]


def test_all_failed_steps_are_reset_in_one_transaction(folder: Path, database_url: str) -> None:
    task = str(run_json(folder, database=database_url)["task_uuid"])

    code, found = retry(task, "--reason", "mended", database=database_url)

    assert (code, found["reset"], found["left"]) == (0, ["bad", "worse"], [])
    assert found["status"] == "steps_in_process"
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            "select state, attempts, xmin::text from tasker.workflow_steps where name in ('bad', 'worse')"
        ).fetchall()
    assert {row[:2] for row in rows} == {("enqueued", 0)}
    assert len({row[2] for row in rows}) == 1, "both or none"
    (folder / "mended").touch()
    assert run_json("--resume", task, database=database_url)["status"] == "complete"
    history = json.loads(invoke("task", "history", task, "--format", "json", database=database_url).stdout)
    assert {row["step"] for row in history if (row["metadata"] or {}).get("reason") == "mended"} >= {"bad", "worse"}


def test_a_second_retry_has_nothing_to_do_and_says_so(folder: Path, database_url: str) -> None:
    task = str(run_json(folder, database=database_url)["task_uuid"])
    first = invoke("task", "retry", task, database=database_url)
    second = invoke("task", "retry", task, database=database_url)

    assert first.exit_code == second.exit_code == 0
    assert first.stdout.startswith("2 steps run again: bad, worse\nthe task is steps_in_process")
    assert f"tasker task watch {task}" in first.stdout
    assert second.stdout.startswith("nothing to retry: no step has failed; the task is steps_in_process")


def test_a_lost_step_that_may_run_once_is_left_to_a_person(folder: Path, database_url: str) -> None:
    (folder / "mended").touch()
    (folder / "lose").touch()
    task = str(run_json(folder, database=database_url)["task_uuid"])
    with psycopg.connect(database_url) as connection:
        connection.execute('update tasker.step_failures set error = error || \'{"error_type": "worker_lost"}\'')

    code, found = retry(task, database=database_url)
    text = invoke("task", "retry", task, database=database_url)

    assert (code, found["reset"], found["left"], found["status"]) == (1, [], ["once"], "error")
    assert states(task, database_url)["once"] == "error"
    assert text.exit_code == 1
    assert "once may run only once, and the outcome of its attempt is unknown" in text.stdout
    assert f"tasker task step reset {task} once" in text.stdout


def test_a_cancelled_or_unknown_task_is_not_retried(folder: Path, database_url: str) -> None:
    invoke("template", "register", folder, database=database_url)
    task = invoke("task", "submit", "mending/mending", database=database_url).stdout.strip()
    invoke("task", "cancel", task, database=database_url)
    cancelled = invoke("task", "retry", task, database=database_url)
    unknown = invoke("task", "retry", "00000000-0000-7000-8000-000000000000", database=database_url)

    assert (cancelled.exit_code, unknown.exit_code) == (1, 1)
    assert f"task {task} is cancelled: its steps cannot run again" in cancelled.stderr
    assert "no task" in unknown.stderr
