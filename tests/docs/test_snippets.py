"""The runner of snippets fails where a reader would."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.snippets import Reader, snippets


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    monkeypatch.chdir(tmp_path)
    return Reader(tmp_path, "postgresql://nobody@127.0.0.1:9/none")


def page(language: str, *lines: str) -> str:
    return "\n".join(["Text.", "", f"```{language}", *lines, "```", ""])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (page("python", "assert 1 == 2"), ""),
        (page("yaml", "name: a", "steps: []"), "T0"),
        (page("yaml", "# fragment", "a: [1"), "flow sequence"),
        (page("console", "$ tasker template validate missing.yaml"), "missing.yaml"),
        (page("console", "$ tasker --version   # exit 1"), "tasker"),
        (page("console", "$ rm -rf ."), "not rm"),
        (page("json", "{"), "property name"),
        (page("toml", "a ="), ""),
        (page("ruby", "puts 1"), "a ruby block"),
        (page("sql", "select 1"), "127.0.0.1"),
    ],
)
def test_what_a_reader_could_not_do_fails_with_its_place(reader: Reader, text: str, message: str) -> None:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - whatever kind it is
        reader.follow(text)

    assert message in str(caught.value)
    assert "block of line 3" in caught.value.__notes__[0]


def test_files_are_written_and_names_shared(reader: Reader) -> None:
    reader.follow(
        page("python", "# part/one.py", "x = 1")
        + page("python", "import asyncio", "await asyncio.sleep(0)", "y = 2")
        + page("python", "assert y == 2")
        + page("console", "$ python part/one.py", "$ tasker --version", "$ tasker template validate x  # exit 2")
    )

    assert (reader.folder / "part" / "one.py").read_text() == "# part/one.py\nx = 1\n"


def test_a_block_inside_a_list_is_found() -> None:
    (snippet,) = snippets("- so:\n\n  ```python\n  if True:\n      x = 1\n  ```\n")

    assert (snippet.language, snippet.text, snippet.line) == ("python", "if True:\n    x = 1\n", 3)
