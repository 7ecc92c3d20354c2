"""A path that is not there is said to be missing, with one like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasker.errors import TemplateNotFound, UsageError
from tasker.services.workflows.targets import registered_name, unknown_target
from tests.support.command_line import invoke


@pytest.fixture(autouse=True)
def workflows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "workflows" / "linear_math").mkdir(parents=True)
    (tmp_path / "workflows" / ".hidden_math").mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", ["template validate", "template graph", "template register", "worker", "dev"])
def test_commands_for_workflows_suggest_a_path(command: str) -> None:
    answer = invoke(*command.split(), "workflows/linear_mth")

    assert answer.exit_code == 2
    assert "Path 'workflows/linear_mth' does not exist: did you mean `workflows/linear_math`?" in answer.stderr


def test_a_command_says_that_a_path_is_missing_when_nothing_is_like_it() -> None:
    answer = invoke("template", "validate", "elsewhere/entirely")

    assert answer.exit_code == 2
    assert "Path 'elsewhere/entirely' does not exist." in answer.stderr


@pytest.mark.parametrize("target", ["./workflows/linear_mth", "linear_math"])
def test_what_can_only_be_a_path_is_answered_with_one_like_it(target: str) -> None:
    with pytest.raises(UsageError, match="does not exist") as caught:
        registered_name(target)
    assert caught.value.hint == "did you mean `workflows/linear_math`?"


@pytest.mark.parametrize(
    ("target", "message", "hint"),
    [
        ("workflows/linear_mth", "workflows/linear_mth does not exist, and no template", "did you mean `workflows/lin"),
        ("workflows/nothing", "workflows/nothing does not exist, and no template", "tasker template list"),
        ("shop/nothing", "^no template", "tasker template list"),
    ],
)
def test_a_name_whose_namespace_is_a_folder_is_said_to_be_neither(target: str, message: str, hint: str) -> None:
    with pytest.raises(TemplateNotFound, match=message) as caught, unknown_target(target):
        raise TemplateNotFound(f"no template {target} is registered", hint="tasker template list shows what is")
    assert str(caught.value.hint).startswith(hint)
