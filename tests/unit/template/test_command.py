"""`tasker template`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tasker.cli.main import cli
from tasker.template import compile_text
from tests.support.recorded import assert_recorded
from tests.unit.template.support import DATA, step

GOOD = DATA / "good" / "approval.yaml"
BAD = DATA / "bad" / "typos.yaml"
GOOD_FILES = sorted((DATA / "good").glob("*.yaml"))
GRAPHS = ("text", "json", "mermaid", "dot")


def tasker(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["template", *map(str, arguments)])


def test_validate_is_silent_about_good_templates() -> None:
    result = tasker("validate", GOOD, DATA / "good" / "nested_approval.yaml")
    assert (result.exit_code, result.output) == (0, "")


def test_validate_reports_every_problem_and_fails() -> None:
    result = tasker("validate", DATA / "bad")
    assert result.exit_code == 1
    assert f"{BAD}:1:7: error[T026]" in result.output
    assert f"{DATA / 'bad' / 'tabs.yaml'}:6:1: error[T002]" in result.output
    assert result.output.splitlines()[-1].endswith("warnings")


def test_validate_shows_warnings_and_succeeds(tmp_path: Path) -> None:
    file = tmp_path / "workflow.yaml"
    file.write_text(step("retry: {max_attempts: 0}"))
    result = tasker("validate", file)
    assert result.exit_code == 0
    assert "warning[T080]" in result.output
    assert result.output.endswith("0 errors, 1 warning\n")


def test_validate_names_a_file_given_twice_once() -> None:
    assert tasker("validate", BAD, BAD).output == tasker("validate", BAD).output


def test_validate_checks_callables_when_handlers_are_given(tmp_path: Path) -> None:
    file = tmp_path / "workflow.yaml"
    file.write_text(step(""))
    (tmp_path / "more.py").write_text("")
    assert tasker("validate", file).exit_code == 0
    result = tasker("validate", file, "--handlers", tmp_path / "more.py")
    assert result.exit_code == 1
    assert f"{file}:6:14: error[T035]" in result.output


def test_validate_without_a_template_is_a_mistake(tmp_path: Path) -> None:
    result = tasker("validate", tmp_path)
    assert result.exit_code == 2
    assert "contains no template" in result.output


def test_schema_prints_the_json_schema() -> None:
    assert json.loads(tasker("schema").output)["title"] == "Tasker workflow template"


def test_commands_print_what_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DATA)
    monkeypatch.setenv("COLUMNS", "80")
    texts = {}
    for command in (
        "validate bad",
        *(f"validate bad/tabs.yaml bad/syntax.yaml --format {form}" for form in ("json", "sarif")),
        *(f"graph good/{name}.yaml --format {form}" for name in ("approval", "csv_batch") for form in GRAPHS),
        *(f"show good/{file.name} --env production" for file in GOOD_FILES),
        "show good/approval.yaml --format json",
    ):
        result = tasker(*command.split())
        name = command.partition(" ")[0]
        answer = f"$ tasker template {command}  # exit {result.exit_code}\n{result.output}\n"
        texts[name] = texts.get(name, "") + answer
    assert_recorded("template", texts)


def test_graph_and_show_of_a_bad_template_print_the_report() -> None:
    for command in ("graph", "show"):
        result = tasker(command, BAD)
        assert result.exit_code == 2
        assert f"{BAD}:1:7: error[T026]" in result.output


@pytest.mark.parametrize("file", GOOD_FILES, ids=lambda file: file.stem)
def test_show_prints_a_template_that_compiles_to_the_same_plan(file: Path) -> None:
    result = tasker("show", file)
    assert result.exit_code == 0
    assert compile_text(result.output).plans == compile_text(file.read_text()).plans


def test_show_applies_the_environment() -> None:
    file = DATA / "good" / "every_key.yaml"
    assert "gateway: live" in tasker("show", file, "--env", "production").output
    assert "gateway: sandbox" in tasker("show", file).output


def test_show_separates_the_templates_of_a_file() -> None:
    output = tasker("show", DATA / "good" / "older_spellings.yaml").output
    assert output.count("\n---\n") == 1
