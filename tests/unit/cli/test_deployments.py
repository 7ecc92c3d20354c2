"""`tasker plan` and `tasker apply`, as far as they need no database."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tasker.cli.main import cli
from tasker.services.workflows.joined_texts import JoinedTexts, join_files
from tasker.template import compile_text

ONE = "name: one\nnamespace: shop\nversion: 1.0.0\nsteps: [{name: a, handler: shop.a}]\n"


def tasker(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments)])


@pytest.mark.parametrize("arguments", [["plan"], ["plan", "nothing"], ["plan", "--nonsense"], ["plan", "broken.yaml"]])
def test_a_mistake_is_no_change(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.yaml").write_text("nme: x")
    assert tasker(*arguments).exit_code == 1


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"form": 1}', '{"form": 1, "text": 3, "files": [], "starts": []}']
)
def test_a_file_that_is_no_plan_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(content)
    result = tasker("apply", tmp_path / "plan.json")
    assert (result.exit_code, "is not a plan" in result.output) == (2, True), result.output


def test_a_plan_has_its_options_already(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}")
    assert "a plan has its options already" in tasker("apply", tmp_path / "plan.json", "--force").output


def test_lines_of_joined_files_are_found_again(tmp_path: Path) -> None:
    for name, text in (
        ("a.yaml", ONE),
        ("b.yaml", "---\n" + ONE.replace("one", "two").rstrip()),
        ("c.yaml", "# c\n" + ONE),
    ):
        (tmp_path / name).write_text(text)
    texts = join_files([tmp_path, tmp_path / "a.yaml"])
    assert [Path(file).name for file in texts.files] == ["a.yaml", "b.yaml", "c.yaml"]
    lines = texts.text.splitlines()
    found = [texts.place(number) for number, line in enumerate(lines, 1) if line.startswith("name:")]
    assert [(Path(file).name, line) for file, line in found] == [("a.yaml", 1), ("b.yaml", 2), ("c.yaml", 2)]
    assert JoinedTexts.from_dict(texts.to_dict()) == texts
    assert [plan.name for plan in compile_text(texts.text).plans] == ["one", "two"]
