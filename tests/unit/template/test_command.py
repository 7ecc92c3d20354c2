"""`tasker template`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tasker.cli.main import cli
from tests.unit.template.support import DATA, plan_of, step

GOOD = DATA / "good" / "approval.yaml"
BAD = DATA / "bad" / "typos.yaml"


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


@pytest.mark.parametrize(("path", "exit_code"), [(GOOD, 0), (BAD, 1)])
def test_validate_writes_json_and_sarif(path: Path, exit_code: int) -> None:
    as_json, as_sarif = (tasker("validate", path, "--format", form) for form in ("json", "sarif"))
    assert as_json.exit_code == as_sarif.exit_code == exit_code
    assert bool(json.loads(as_json.output)) == bool(exit_code)
    assert bool(json.loads(as_sarif.output)["runs"][0]["results"]) == bool(exit_code)


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


@pytest.mark.parametrize(
    ("form", "start"), [("text", "conditional_approval/"), ("mermaid", "flowchart"), ("dot", "digraph")]
)
def test_graph_draws_the_template(form: str, start: str) -> None:
    result = tasker("graph", GOOD, "--format", form)
    assert result.exit_code == 0
    assert result.output.startswith(start)


def test_graph_and_show_of_a_bad_template_print_the_report() -> None:
    for command in ("graph", "show"):
        result = tasker(command, BAD)
        assert result.exit_code == 2
        assert f"{BAD}:1:7: error[T026]" in result.output


def test_show_prints_a_template_that_compiles_to_the_same_plan() -> None:
    result = tasker("show", GOOD)
    assert result.exit_code == 0
    assert plan_of(result.output) == plan_of(GOOD.read_text())
    assert "type: deferred_convergence" in result.output


def test_show_applies_the_environment() -> None:
    file = DATA / "good" / "every_key.yaml"
    assert "gateway: live" in tasker("show", file, "--env", "production").output
    assert "gateway: sandbox" in tasker("show", file).output


def test_show_separates_the_templates_of_a_file() -> None:
    output = tasker("show", DATA / "good" / "older_spellings.yaml").output
    assert output.count("\n---\n") == 1
