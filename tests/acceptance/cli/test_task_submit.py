"""`tasker task submit`: a task for a fleet, from the shell."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.acceptance.examples.workflow_case import WORKFLOWS
from tests.support.command_line import invoke, run_json
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.oracle import Oracle

LINEAR = WORKFLOWS / "linear_math"
TARGET = "linear/linear_workflow"


@pytest.fixture
def registered(database_url: str) -> str:
    """A database in which the template is registered, and nobody serves it."""
    assert invoke("template", "register", LINEAR, database=database_url).exit_code == 0
    return database_url


def tasks(url: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(invoke("task", "list", "--format", "json", database=url).stdout)
    return found


def test_what_is_submitted_waits_for_a_worker_and_is_named(registered: str) -> None:
    result = invoke("task", "submit", TARGET, "--set", "value=3", "--tag", "by-hand", database=registered)
    assert result.exit_code == 0, result.output
    (task,) = tasks(registered)
    assert result.stdout.strip() == task["task_uuid"]
    shown = json.loads(invoke("task", "show", str(task["task_uuid"]), "--format", "json", database=registered).stdout)
    assert (shown["context"], shown["tags"], shown["status"]) == ({"value": 3}, ["by-hand"], "steps_in_process")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["linear/unknown"], "no template linear/unknown is registered"),
        (["linear"], "namespace/name"),
        ([TARGET, "--input", "[1]"], "expected an object"),
        ([TARGET, "--set", "value=many"], "value"),
        ([TARGET, "--timeout", "3"], "--wait"),
    ],
)
def test_a_mistake_creates_nothing(registered: str, arguments: list[str], said: str) -> None:
    result = invoke("task", "submit", *arguments, database=registered)
    assert (result.exit_code, said in result.output) == (2, True), result.output
    assert tasks(registered) == []


def test_a_key_makes_one_task(registered: str) -> None:
    keyed = ("task", "submit", TARGET, "--set", "value=1", "--idempotency-key", "order-7")
    again = [invoke(*keyed, database=registered) for _ in range(2)]
    (task,) = tasks(registered)
    assert [result.exit_code for result in again] == [0, 2]
    assert f"this task already exists: {task['task_uuid']}, steps_in_process" in again[1].stderr
    shown = next(line for line in again[1].stderr.splitlines() if "to see it: " in line).partition("to see it: ")[2]
    assert str(task["task_uuid"]) in invoke(*shlex.split(shown)[1:]).stdout, "the command can be copied"


def test_a_key_that_is_known_may_answer_with_its_task(registered: str) -> None:
    keyed = ("task", "submit", TARGET, "--set", "value=1", "--idempotency-key", "order-7", "--on-duplicate", "return")
    first, second = (invoke(*keyed, "--format", "json", database=registered) for _ in range(2))
    text = invoke(*keyed, database=registered)
    (task,) = tasks(registered)
    created = {"task_uuid": task["task_uuid"], "status": "steps_in_process"}
    assert [json.loads(found.stdout) for found in (first, second)] == [
        created | {"created": True},
        created | {"created": False},
    ]
    assert (second.exit_code, text.exit_code, text.stdout.strip()) == (0, 0, task["task_uuid"])
    assert f"already exists: {task['task_uuid']}" in text.stderr


def test_a_run_with_a_known_key_names_the_task(registered: str) -> None:
    task = run_json(LINEAR, "--idempotency-key", "k", database=registered)["task_uuid"]
    again = invoke("run", LINEAR, "--idempotency-key", "k", database=registered)
    assert (again.exit_code, f"already exists: {task}, complete" in again.stderr) == (2, True), again.output
    assert f"tasker task show {task}" in again.stderr


def test_a_task_that_nobody_runs_is_not_waited_for_longer_than_asked(registered: str) -> None:
    result = invoke("task", "submit", TARGET, "--set", "value=1", "--wait", "--timeout", "0.1", database=registered)
    assert result.exit_code == 1
    assert result.stdout.strip() == tasks(registered)[0]["task_uuid"]
    assert "not ended after 0.1 s; see: tasker task show" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("divisor", "code", "status"), [(2, 0, "complete"), (0, 1, "error")])
def test_the_end_is_shown_and_told_by_the_exit_code(
    registered: str, fleet: Fleet, oracle: Oracle, divisor: int, code: int, status: str
) -> None:
    fleet.worker("worker", str(LINEAR))
    given = json.dumps({"value": 3, "divisor": divisor})
    result = invoke(
        "task",
        "submit",
        TARGET,
        "--input",
        given,
        "--wait",
        "--timeout",
        "120",
        "--format",
        "json",
        database=registered,
    )
    assert result.exit_code == code, (result.output, fleet.log("worker"))
    report = json.loads(result.stdout)
    assert report["status"] == status
    oracle.check({report["task_uuid"]: status})


def test_the_folder_is_not_taken_for_a_name(registered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`workflows/linear_math` exists here, and looks like a name."""
    monkeypatch.chdir(Path(WORKFLOWS).parent)
    result = invoke("task", "submit", "workflows/linear_math", database=registered)
    assert (result.exit_code, "is a file or folder, not a registered template" in result.output) == (2, True)
    assert "tasker template register workflows/linear_math" in result.output


LINES = """{"context": {"value": 1}, "idempotency_key": "one"}
{"namespace": "linear", "name": "linear_workflow", "context": {"value": 2}, "priority": 7, "tags": ["two"]}

not json
{"context": {"value": "many"}}
{"name": "linear_workflow"}
{"context": {"value": 3}, "priority": true}
{"context": {"value": 3}, "colour": "red"}
{"context": {"value": 1}, "idempotency_key": "one"}
{"namespace": "linear", "name": "unknown"}
[1]
"""


def test_each_line_of_a_batch_has_an_answer_of_its_own(registered: str, tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text(LINES)

    done = invoke("task", "submit", TARGET, "--batch", file, "--tag", "all", "--format", "json", database=registered)
    answers = {each["line"]: each for each in map(json.loads, done.stdout.splitlines())}

    assert (done.exit_code, done.stderr.strip()) == (1, "10 lines, 8 refused")
    assert sorted(answers) == [1, 2, 4, 5, 6, 7, 8, 9, 10, 11]
    found = {task["task_uuid"]: task for task in tasks(registered)}
    assert {*found} == {answers[1]["task_uuid"], answers[2]["task_uuid"]}
    assert found[answers[2]["task_uuid"]]["priority"] == 7
    for line, said in {
        4: "invalid JSON",
        5: "value",
        6: "name without namespace",
        7: "priority: expected critical, high",
        8: "unknown: colour",
        9: str(answers[1]["task_uuid"]),
        10: "no template linear/unknown",
        11: "expected a JSON object",
    }.items():
        assert said in json.dumps(answers[line]), answers[line]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"context": {"value": 1}, "context": {"value": 2}}', "the key 'context' occurs twice"),
        ('{"context": {"value": 1, "value": 2}}', "the key 'value' occurs twice"),
    ],
)
def test_line_of_a_batch_with_a_repeated_key_is_refused_by_its_number(registered: str, line: str, said: str) -> None:
    lines = '{"context": {"value": 7}}\n' + line
    done = invoke("task", "submit", TARGET, "--batch", "-", database=registered, stdin=lines)
    assert f"2: refused: the line cannot be used: {said}" in done.stdout
    assert [task["status"] for task in tasks(registered)] == ["steps_in_process"]


def test_a_batch_that_is_repeated_with_its_keys_creates_nothing_twice(registered: str) -> None:
    arguments = ("task", "submit", TARGET, "--batch", "-", "--on-duplicate", "return")
    line = LINES.splitlines()[0]

    first, again = (invoke(*arguments, database=registered, stdin=line) for _ in range(2))

    assert (first.exit_code, again.exit_code) == (0, 0)
    assert again.stdout == first.stdout.replace("\n", " already exists\n")
    assert len(tasks(registered)) == 1


@pytest.mark.parametrize("option", [("--input", "{}"), ("--set", "a=1"), ("--idempotency-key", "k"), ("--wait",)])
def test_what_is_for_one_task_does_not_go_with_a_batch(registered: str, option: tuple[str, ...]) -> None:
    done = invoke("task", "submit", TARGET, "--batch", "-", *option, database=registered, stdin="{}")

    assert (done.exit_code, f"{option[0]} is for a single task" in done.output) == (2, True)


@pytest.mark.parametrize("option", [("--in", "2h"), ("--at", "2099-01-31T18:00:00Z"), ("--at", "2099-01-31 18:00")])
def test_a_task_for_later_is_listed_and_shown_with_its_time(registered: str, option: tuple[str, str]) -> None:
    result = invoke("task", "submit", TARGET, "--set", "value=3", *option, database=registered)
    assert result.exit_code == 0, result.output
    (task,) = tasks(registered)
    assert task["waits_until"] is not None

    listed = invoke("task", "list", database=registered).stdout
    shown = invoke("task", "show", str(task["task_uuid"]), database=registered).stdout

    assert "waiting_for_dependencies, until 20" in listed
    assert "to begin at 20" in shown
    assert "begins in " in shown
    assert invoke("task", "cancel", str(task["task_uuid"]), database=registered).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--in", "5"], "did you mean 5s?"),
        (["--in", "soon"], "expected a duration such as 90s, 5m, 36h, 3d or 1h30m, got 'soon'"),
        (["--at", "tomorrow"], "expected a time such as '2026-01-31 18:00' or 2026-01-31T18:00:00Z, got 'tomorrow'"),
        (["--at", "2099-01-01", "--in", "5m"], "run_at and delay exclude each other"),
    ],
)
def test_what_is_no_time_to_begin_creates_nothing(registered: str, arguments: list[str], said: str) -> None:
    result = invoke("task", "submit", TARGET, "--set", "value=3", *arguments, database=registered)
    assert (result.exit_code, said in result.output) == (2, True), result.output
    assert tasks(registered) == []


def test_a_line_of_a_batch_may_have_a_start_of_its_own(registered: str, tmp_path: Path) -> None:
    lines = [
        {"context": {"value": 1}},
        {"context": {"value": 2}, "run_at": "2099-01-31T18:00:00Z"},
        {"context": {"value": 3}, "delay": "5"},
        {"context": {"value": 4}, "deadline": "soon"},
    ]
    (tmp_path / "batch.jsonl").write_text("\n".join(map(json.dumps, lines)))
    result = invoke(
        "task", "submit", TARGET, "--batch", str(tmp_path / "batch.jsonl"), "--in", "3d", database=registered
    )

    assert "3: refused: delay: expected a duration" in result.output
    assert "4: refused: deadline: expected a duration" in result.output
    until = sorted(str(task["waits_until"]) for task in tasks(registered))
    assert len(until) == 2
    assert until[1].startswith("2099-01-31T18:00:00")


def test_a_task_that_may_expire_is_shown_with_its_end(registered: str) -> None:
    result = invoke("task", "submit", TARGET, "--set", "value=3", "--expires-in", "1h", database=registered)
    shown = invoke("task", "show", result.stdout.strip(), database=registered).stdout

    assert "cancelled at 20" in shown
    assert " unless begun" in shown


@pytest.mark.parametrize("deadline", ["1h", "2099-01-31T18:00:00Z", "2099-01-31 18:00"])
def test_a_task_with_a_deadline_is_shown_with_it(registered: str, deadline: str) -> None:
    result = invoke("task", "submit", TARGET, "--set", "value=3", "--deadline", deadline, database=registered)
    shown = invoke("task", "show", result.stdout.strip(), database=registered).stdout
    explained = invoke("task", "explain", result.stdout.strip(), database=registered).stdout

    assert "deadline 20" in shown
    assert "the task has a deadline: what is open at " in explained


def test_a_deadline_that_is_none_creates_nothing(registered: str) -> None:
    result = invoke("task", "submit", TARGET, "--set", "value=3", "--deadline", "soon", database=registered)

    assert (result.exit_code, "expected a duration such as 90s" in result.output) == (2, True)
    assert tasks(registered) == []
