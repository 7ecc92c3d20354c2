"""`tasker task explain`: what is said, to people and programs, and the exit code."""

from __future__ import annotations

import json
from shlex import quote

import pytest

from tests.acceptance.examples.workflow_case import WORKFLOWS
from tests.support.command_line import invoke, run_json

LINEAR = WORKFLOWS / "linear_math"
UNKNOWN = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def waiting(database_url: str) -> str:
    """A task that nobody runs."""
    invoke("template", "register", LINEAR, database=database_url)
    arguments = ("task", "submit", "linear/linear_workflow", "--set", "value=1", "--set", "divisor=2")
    return invoke(*arguments, database=database_url).stdout.strip()


def test_what_needs_somebody_comes_first_with_what_to_do_and_exit_code_1(waiting: str, database_url: str) -> None:
    result = invoke("task", "explain", waiting[:13], database=database_url)

    first, second = result.stdout.split("\n\n")[1:3]
    assert result.exit_code == 1
    assert first.startswith("! mathematical_add\n  no live worker serves ")
    assert "no worker is running in the namespace linear" in first
    assert f"\n    tasker worker --namespace linear --handlers MODULE --database-url {quote(database_url)}" in first
    assert second.startswith("· mathematical_multiply\n  waits for mathematical_add\n")


def test_json_has_the_values_the_sentence_and_the_remedy_of_each_reason(waiting: str, database_url: str) -> None:
    result = invoke("task", "explain", waiting, "--format", "json", database=database_url)

    found = json.loads(result.stdout)
    assert (found["task_uuid"], found["needs_somebody"], found["processes_at_work"]) == (waiting, True, 0)
    assert [each["reason"] for each in found["reasons"]][:2] == ["nobody", "waits"]
    assert found["reasons"][1]["values"]["parents"] == ["mathematical_add"]
    assert found["reasons"][1]["sentence"] == "waits for mathematical_add"


def test_one_step_is_explained_alone_also_when_it_has_ended(database_url: str) -> None:
    task = run_json(LINEAR, database=database_url)["task_uuid"]

    whole = invoke("task", "explain", task, database=database_url)
    one = invoke("task", "explain", task, "--step", "mathematical_add", database=database_url)

    assert (whole.exit_code, whole.stdout.splitlines()[-1]) == (0, "no steps left to run")
    assert "· mathematical_add\n  complete since " in one.stdout


def test_a_failed_step_is_explained_with_the_command_that_lets_it_run_again(database_url: str) -> None:
    task = run_json(LINEAR, "--set", "divisor=0", database=database_url)["task_uuid"]

    result = invoke("task", "explain", task, "--step", "mathematical_divide", database=database_url)

    assert result.exit_code == 1
    assert "failed in attempt 1 of 3: " in result.stdout
    assert f"tasker task step reset {task} mathematical_divide --database-url" in result.stdout


def test_a_step_that_there_is_not_is_a_mistake_that_names_those_there_are(waiting: str, database_url: str) -> None:
    result = invoke("task", "explain", waiting, "--step", "multiply", database=database_url)

    assert result.exit_code == 2
    assert "has no step 'multiply'" in result.output
    assert "mathematical_add, mathematical_multiply" in result.output


def test_a_task_that_there_is_not_says_so(waiting: str, database_url: str) -> None:
    assert invoke("task", "explain", UNKNOWN, database=database_url).exit_code == 1
