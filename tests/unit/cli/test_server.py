"""`tasker server` and `tasker dev --port` where what answers HTTP is not installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tasker.cli.commands import server
from tests.support.command_line import invoke


@pytest.fixture(autouse=True)
def nothing_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(server, "find_spec", lambda name: None if name in server.LIBRARIES else find(name))


@pytest.mark.parametrize("command", [["server"], ["dev", "--port", "0"]])
def test_a_missing_extra_is_named_with_the_command_that_installs_it(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "workflow.yaml").write_text("name: w\nversion: 1.0.0\nsteps: [{name: a, handler: h}]\n")
    answer = invoke(*command, *([tmp_path] if command[0] == "dev" else []), "--data-dir", tmp_path / "data")

    assert answer.exit_code == 2
    assert "needs cryptography, fastapi, httptools, jwt, uvicorn, which is not installed" in answer.stderr
    assert "pip install 'fastapi>=" in answer.stderr
