"""`tasker template validate` reads the handlers.py beside the template, as `tasker run` does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import invoke, write_workflow

TEMPLATE = """
name: order
namespace: tests
version: 1.0.0
steps:
  - {name: route, handler: route}
"""
DECISION = """
from tasker.handlers.decorators import decision_handler


@decision_handler("route")
def route():
    return None
"""


@pytest.mark.parametrize("named", ["", "workflow.yaml"])
def test_a_decision_on_a_standard_step_is_an_error(tmp_path: Path, named: str) -> None:
    folder = write_workflow(tmp_path, TEMPLATE, DECISION)

    answer = invoke("template", "validate", folder / named)

    assert answer.exit_code == 1
    assert f"{folder / 'workflow.yaml'}:6:28: error[T037]" in answer.stdout
    assert "type: decision" in answer.stdout


def test_a_handler_that_is_missing_beside_the_template_is_an_error(tmp_path: Path) -> None:
    folder = write_workflow(tmp_path, TEMPLATE, DECISION.replace("route", "rout"))

    answer = invoke("template", "validate", folder)

    assert answer.exit_code == 1
    assert "error[T035]: the handler of step `route` cannot be resolved" in answer.stdout
    assert "did you mean 'rout'" in answer.stdout


def test_a_template_without_a_handlers_file_is_not_checked_against_handlers(tmp_path: Path) -> None:
    folder = write_workflow(tmp_path, TEMPLATE, "")
    (folder / "handlers.py").unlink()

    answer = invoke("template", "validate", folder)

    assert (answer.exit_code, answer.output) == (0, "")


@pytest.mark.parametrize(
    ("handlers", "line", "says"),
    [
        ("\n\nimport not_installed_anywhere\n", 3, "No module named 'not_installed_anywhere'"),
        ("def broken(:\n    pass\n", 1, "SyntaxError"),
        ("VALUE = 1\nVALUE / 0\n", 2, "ZeroDivisionError: division by zero"),
    ],
)
def test_a_handlers_file_that_cannot_be_imported_is_an_error_at_its_line(
    tmp_path: Path, handlers: str, line: int, says: str
) -> None:
    folder = write_workflow(tmp_path, TEMPLATE, handlers)

    answer = invoke("template", "validate", folder)
    (found,) = json.loads(invoke("template", "validate", folder, "--format", "json").stdout)

    assert answer.exit_code == 1
    assert f"{folder / 'handlers.py'}:{line}:1: error[T035]" in answer.stdout
    assert "Traceback" not in answer.output
    assert (found["file"], found["line"], found["code"]) == (str(folder / "handlers.py"), line, "T035")
    assert says in found["message"]


def test_two_templates_of_one_folder_report_its_broken_handlers_once(tmp_path: Path) -> None:
    write_workflow(tmp_path, TEMPLATE + "---" + TEMPLATE.replace("order", "bill"), "1 / 0\n")

    assert invoke("template", "validate", tmp_path).stdout.count("error[T035]") == 1


def test_what_handlers_print_while_they_load_is_no_part_of_the_answer(tmp_path: Path) -> None:
    folder = write_workflow(tmp_path, TEMPLATE, "print('loading')\n" + DECISION)

    (found,) = json.loads(invoke("template", "validate", folder, "--format", "json").stdout)
    assert found["code"] == "T037"
