"""`tasker plugin` tells what a process here would make of each installed plugin, and why."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tasker.cli.main import cli
from tests.support.strangers import install_plugin

GOOD = "from tasker.plugins.hooks import hookimpl\n@hookimpl\ndef tasker_sweep_repaired(): pass\n"


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_plugin(tmp_path, monkeypatch, "good", GOOD)
    install_plugin(tmp_path, monkeypatch, "broken", "import a_client_that_is_not_here")
    install_plugin(tmp_path, monkeypatch, "silenced", "raise SystemExit('imported')")
    monkeypatch.setenv("TASKER_PLUGINS_DISABLED", "silenced")
    monkeypatch.setenv("TASKER_PLUGINS_ENABLED", "logs")
    monkeypatch.setenv("TASKER_LOGS_PATH", str(tmp_path / "journal"))


def invoke(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["plugin", *arguments])
    assert result.exit_code == code, result.output
    return result


def test_each_plugin_is_listed_with_its_status_its_origin_and_its_problem(plugins: None) -> None:
    found = {each["name"]: each for each in json.loads(invoke("list", "--format", "json").stdout)}
    status = {name: found[name]["status"] for name in ("good", "broken", "silenced", "logs")}
    assert status == {"good": "on", "broken": "refused", "silenced": "disabled", "logs": "on"}
    assert (
        found["good"] | {"distribution": "good_dist", "version": "1.0", "hooks": ["tasker_sweep_repaired"]}
        == found["good"]
    )
    assert "a_client_that_is_not_here" in found["broken"]["problem"]
    assert (found["silenced"]["hooks"], "silenced_plugin" in sys.modules) == ([], False)
    assert found["logs"]["settings"] == ["path", "starts"]
    text = invoke("list").stdout
    assert "broken refused broken_dist 1.0" in " ".join(text.split())


def test_one_plugin_is_shown_with_hooks_and_settings_and_one_that_cannot_be_loaded_fails(plugins: None) -> None:
    assert "plugins.logs.path, plugins.logs.starts" in invoke("show", "logs").stdout
    assert "a_client_that_is_not_here" in invoke("show", "broken", code=1).stdout
    assert json.loads(invoke("show", "good", "--format", "json").stdout)["place"] == "good_plugin"
    assert "installed: broken, command, files, good, llm, logs, " in invoke("show", "nobody", code=2).stderr


def test_a_configuration_with_problems_keeps_nobody_from_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKER_PLUGINS_ENABLED", "lgos")
    result = invoke("show", "logs")
    assert "status:   disabled; add it to plugins.enabled" in result.stdout
    assert "Did you mean logs?" in result.stderr
