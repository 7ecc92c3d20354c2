"""`tasker task` on a real database."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from tests.acceptance.examples.workflow_case import WORKFLOWS
from tests.support.command_line import HOLDING, invoke, run_json, write_workflow

LINEAR = WORKFLOWS / "linear_math"
UNKNOWN = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def failed(database_url: str) -> str:
    """A task of which the last step failed."""
    return str(run_json(LINEAR, "--set", "divisor=0", database=database_url)["task_uuid"])


def waiting(folder: Path, database_url: str) -> str:
    """A task that is not finished and that nobody runs."""
    template = "name: w\nnamespace: w\nversion: 1.0.0\nsteps: [{name: hold, handler: hold}]\n"
    write_workflow(folder, template, HOLDING)
    result = invoke("run", folder, "--timeout", "0.2", "--json", database=database_url)
    return str(json.loads(result.stdout)["task_uuid"])


def test_tasks_are_listed_the_newest_first_and_can_be_chosen(failed: str, database_url: str) -> None:
    complete = run_json(LINEAR, database=database_url)["task_uuid"]

    listed = json.loads(invoke("task", "list", "--format", "json", database=database_url).stdout)
    errors = invoke("task", "list", "--status", "error", database=database_url).stdout
    none = invoke("task", "list", "--status", "cancelled", database=database_url).stdout

    assert [row["task_uuid"] for row in listed] == [complete, failed]
    assert failed in errors
    assert complete not in errors
    assert none == "no tasks\n"


def test_tasks_are_chosen_by_age_and_by_tags_beside_everything_else(database_url: str) -> None:
    def submit(*tags: str) -> str:
        options = [word for tag in tags for word in ("--tag", tag)]
        key = ("--idempotency-key", str(tags))
        return invoke(
            "task", "submit", "linear/linear_workflow", "--set", "value=1", *options, *key, database=database_url
        ).stdout.strip()

    def listed(*options: str) -> list[str]:
        found = invoke("task", "list", *options, "--format", "json", database=database_url)
        return [row["task_uuid"] for row in json.loads(found.stdout)]

    invoke("template", "register", LINEAR, database=database_url)
    old, red, both = submit(), submit("red"), submit("red", "big")
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "update tasker.tasks set created_at = created_at - interval '3 hours' where task_uuid = %s", [old]
        )

    assert listed("--since", "2h") == [both, red]
    assert listed("--since", "4h") == [both, red, old]
    assert listed("--tag", "red") == [both, red]
    assert listed("--tag", "red", "--tag", "big", "--since", "2h", "--namespace", "linear") == [both]
    assert listed("--tag", "re") == []
    assert listed("--tag", "red", "--status", "error") == []


def test_tasks_of_a_template_are_not_those_of_templates_with_a_like_name(tmp_path: Path, database_url: str) -> None:
    tasks = {}
    for name in ("order", "orders", "order_v2", "reorder", "Order"):
        template = f"name: {name}\nnamespace: w\nversion: 1.0.0\nsteps: [{{name: hold, handler: hold}}]\n"
        invoke("template", "register", write_workflow(tmp_path / name, template, HOLDING), database=database_url)
        tasks[name] = invoke("task", "submit", f"w/{name}", database=database_url).stdout.strip()

    found = invoke("task", "list", "--template", "order", "--format", "json", database=database_url)

    assert [(row["template"], row["task_uuid"]) for row in json.loads(found.stdout)] == [("order", tasks["order"])]


def test_a_task_is_shown_with_steps_failures_and_results(failed: str, database_url: str) -> None:
    text = invoke("task", "show", failed, database=database_url).stdout

    assert "template  linear/linear_workflow:1.0.0" in text
    assert "mathematical_divide    ✖ error" in text
    assert "mathematical_divide failed after 1 attempt of 3" in text
    assert 'mathematical_add:\n  {"value": 15}' in text


def test_the_json_of_a_task_is_that_of_run_and_more(failed: str, database_url: str) -> None:
    found = json.loads(invoke("task", "show", failed, "--format", "json", database=database_url).stdout)

    assert found["error"]["step"] == "mathematical_divide"
    assert found["context"] == {"value": 10, "divisor": 0}
    assert found["tags"] == [f"path:{LINEAR}"]


def test_the_history_can_be_narrowed_to_a_step(failed: str, database_url: str) -> None:
    rows = json.loads(
        invoke(
            "task", "history", failed, "--step", "mathematical_divide", "--format", "json", database=database_url
        ).stdout
    )
    unknown = invoke("task", "history", failed, "--step", "divide", database=database_url)

    assert [row["to_state"] for row in rows][-1] == "error"
    assert {row["step"] for row in rows} == {"mathematical_divide"}
    assert unknown.exit_code == 2
    assert "expected one of: mathematical_add" in unknown.stderr


def test_a_task_is_found_by_the_beginning_of_its_identifier(failed: str, database_url: str) -> None:
    assert failed in invoke("task", "show", failed[:20], database=database_url).stdout
    assert failed in invoke("task", "show", failed.upper().replace("-", ""), database=database_url).stdout


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("1234567", 2, "is too short"),
        ("not-a-task", 2, "is not a task id"),
        (UNKNOWN, 1, f"no task {UNKNOWN} in this database"),
    ],
)
def test_a_task_that_is_not_found_is_said(text: str, code: int, said: str, database_url: str) -> None:
    result = invoke("task", "show", text, database=database_url)

    assert result.exit_code == code
    assert said in result.stderr


def test_a_beginning_that_several_tasks_share_lists_them(database_url: str) -> None:
    # The first eight digits change about once a minute, so two of three tasks have them in common.
    tasks = [run_json(LINEAR, database=database_url)["task_uuid"] for _ in range(3)]
    shared, _ = Counter(task[:8] for task in tasks).most_common(1)[0]

    result = invoke("task", "show", shared, database=database_url)

    assert result.exit_code == 2
    assert f"{shared} matches several tasks" in result.stderr
    assert all((task in result.stderr) == task.startswith(shared) for task in tasks)


def test_a_task_is_cancelled_once_and_keeps_the_reason(tmp_path: Path, database_url: str) -> None:
    task = waiting(tmp_path / "w", database_url)

    first = invoke("task", "cancel", task, "--reason", "no longer wanted", database=database_url)
    second = invoke("task", "cancel", task, database=database_url)
    resumed = invoke("run", "--resume", task, database=database_url)

    assert first.exit_code == 0, first.output
    assert f"cancelled {task}" in first.stdout
    assert second.exit_code == 1
    assert "is cancelled and cannot be cancelled" in second.stderr
    assert resumed.exit_code == 1
    assert "0 of 1 step complete: no longer wanted" in resumed.stdout


def test_a_failed_step_that_is_reset_runs_again(failed: str, database_url: str) -> None:
    done = invoke("task", "step", "reset", failed, "mathematical_divide", "--reason", "try", database=database_url)
    found = run_json("--resume", failed, database=database_url)

    assert f"to resume it: tasker run --resume {failed}" in done.stdout
    assert found["status"] == "error"
    text = invoke("task", "show", failed, database=database_url).stdout
    assert text.count("validation_error: cannot divide by zero") == 2


def test_a_failed_step_can_be_completed_by_hand(failed: str, database_url: str) -> None:
    arguments = ["task", "step", "complete", failed, "mathematical_divide", "--result", '{"value": 1}']
    done = invoke(*arguments, database=database_url)
    again = invoke(*arguments, database=database_url)

    assert done.stdout == "done, the task is complete\n"
    assert again.exit_code == 1
    assert "is complete: complete is not possible" in again.stderr
    assert "'complete' is final" in again.stderr


def test_a_step_that_does_not_exist_cannot_be_mended(failed: str, database_url: str) -> None:
    result = invoke("task", "step", "resolve", failed, "divide", database=database_url)

    assert result.exit_code == 2
    assert "has no step 'divide'" in result.stderr
