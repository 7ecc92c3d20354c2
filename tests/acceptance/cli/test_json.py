"""`--format json` of the task commands: one shape, also for what went wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.examples.workflow_case import WORKFLOWS
from tests.support.command_line import invoke

LINEAR = WORKFLOWS / "linear_math"
TARGET = ("linear/linear_workflow", "--set", "value=1")
UNKNOWN = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def registered(database_url: str) -> str:
    assert invoke("template", "register", LINEAR, database=database_url).exit_code == 0
    return database_url


def told(*arguments: str, url: str, code: int = 0) -> Any:
    result = invoke("task", *arguments, "--format", "json", database=url)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_every_command_about_a_task_says_which_one_and_how_it_stands(registered: str) -> None:
    submitted = told("submit", *TARGET, url=registered)
    task = submitted["task_uuid"]
    answers = {
        "submit": (submitted, "steps_in_process"),
        "show": (told("show", task, url=registered), "steps_in_process"),
        "list": (told("list", url=registered)[0], "steps_in_process"),
        "retry": (told("retry", task, url=registered), "steps_in_process"),
        "resolve": (told("step", "resolve", task, "mathematical_add", url=registered), "steps_in_process"),
        "cancel": (told("cancel", task, url=registered), "cancelled"),
        "watch": (told("submit", *TARGET, "--on-duplicate", "return", "--wait", url=registered, code=1), "cancelled"),
    }

    assert {name: (row["task_uuid"], row["status"]) for name, (row, _) in answers.items()} == {
        name: (task, status) for name, (_, status) in answers.items()
    }


@pytest.mark.parametrize(
    ("arguments", "code", "kind"),
    [
        (("show", UNKNOWN), 1, "task_not_found"),
        (("cancel", "42"), 2, "usage_error"),
        (("retry", UNKNOWN), 1, "task_not_found"),
        (("step", "reset", UNKNOWN, "a"), 1, "task_not_found"),
        (("submit", "linear/nothing"), 2, "template_not_found"),
        (("submit", *TARGET, "--set", "divisor=much"), 2, "input_invalid"),
        (("list", "--since", "2x"), 2, "usage_error"),
        (("list", "--sinc", "2h"), 2, "usage_error"),
        (("retry",), 2, "usage_error"),
        (("submit", *TARGET, "--timeout", "1"), 2, "usage_error"),
    ],
)
def test_what_went_wrong_is_the_object_that_run_prints(
    arguments: tuple[str, ...], code: int, kind: str, registered: str
) -> None:
    error = told(*arguments, url=registered, code=code)["error"]

    assert error["type"] == kind
    assert {"message", "code", "retryable"} <= error.keys()
