"""`--format json` of commands that make, name and register something: the keys that programs may rely on."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import invoke
from tests.unit.cli.all_commands.tree import PLUGINS

TEMPLATE = """
name: orders
namespace_name: shop
version: 1.0.0
steps:
  - name: check
    handler: {callable: check}
  - name: charge
    handler: {callable: charge}
    dependencies: [check]
"""


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, without a configuration and without profiles."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("TASKER_URL", "TASKER_PROFILE", "TASKER_CONFIG_PATH", "TASKER_CONFIG_ROOT", "TASKER_ENV"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.yaml").write_text(TEMPLATE, encoding="utf-8")


def shown(command: str) -> Any:
    result = invoke(*shlex.split(command), "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_new_workflow_is_told_as_an_object() -> None:
    made = shown("new hello")
    assert (made["folder"], made["next"][0]) == ("hello", "tasker run hello")
    assert made["files"].keys() == {
        "workflow.yaml",
        "handlers.py",
        "input.json",
        "hello.scenario.yaml",
        "test_hello.py",
    }


def test_a_new_plugin_is_told_as_an_object() -> None:
    made = shown("new plugin audit")
    assert (made["folder"], "pyproject.toml" in made["files"]) == ("tasker-audit", True)
    assert made["next"][0] == "pip install tasker-audit"


def test_profiles_are_told_as_objects() -> None:
    named = {"name": "prod", "url": "https://h", "credentials": None, "in_use": True}
    assert shown("profile add prod --url https://h --use") == named
    assert [shown("profile use --none"), shown("profile use prod")] == [{"in_use": None}, {"in_use": "prod"}]
    assert shown("profile remove prod") == {"removed": "prod"}


def test_a_configuration_that_is_written_is_told_with_its_files_and_text() -> None:
    written = shown("config init")["written"]
    assert "config/tasker/base/common.toml" in written
    assert all(Path(file).is_file() for file in written)

    made = shown("config generate --context worker")
    assert (made["context"], made["environment"]) == ("worker", "development")
    assert made["toml"] == Path(made["output"]).read_text(encoding="utf-8")
    assert shown("config generate --output -")["output"] is None


def test_a_template_is_told_as_it_is_read_and_as_a_graph() -> None:
    (template,) = shown("template show orders.yaml")
    assert [step["name"] for step in template["steps"]] == ["check", "charge"]

    (graph,) = shown("template graph orders.yaml")
    assert (graph["namespace"], graph["name"], graph["version"]) == ("shop", "orders", "1.0.0")
    assert graph["edges"] == [{"from_step": "check", "to_step": "charge"}]


def test_a_secret_of_a_webhook_is_told_as_an_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKER_PLUGINS_ENABLED", PLUGINS)
    assert shown("webhook secret")["secret"].startswith("whsec_")


@pytest.mark.parametrize("command", ["new Hello", "profile use nobody", "config explain nothing", "plugin show nobody"])
def test_a_mistake_is_an_object_as_well(command: str) -> None:
    result = invoke(*command.split(), "--format", "json")
    assert (result.exit_code, "Hint" in result.stderr or "Error" in result.stderr) == (2, True)
    assert json.loads(result.stdout)["error"]["message"] in result.stderr.replace("\n", " ")
