"""The input of `tasker run`: where it comes from, and what is said when it cannot be used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.cli.run.input import TaskInput, read_input
from tasker.errors import UsageError


def read(text: str | None = None, *settings: str, folder: Path | None = None, stdin: str = "") -> TaskInput:
    return read_input(text, settings, folder=folder, read_stdin=lambda: stdin)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "input.json").write_text('{"name": "file"}', encoding="utf-8")
    return tmp_path


def test_without_anything_the_input_is_empty(tmp_path: Path) -> None:
    assert read(folder=tmp_path) == TaskInput({}, "{}")


def test_the_folders_input_counts_and_is_named(folder: Path) -> None:
    found = read(folder=folder)

    assert found.values == {"name": "file"}
    assert found.source == str(folder / "input.json")


def test_a_folder_in_place_of_the_file_is_refused_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "input.json").mkdir()
    with pytest.raises(UsageError, match=r"input\.json cannot be read: Is a directory"):
        read(folder=tmp_path)


def test_a_given_input_replaces_that_of_the_folder(folder: Path) -> None:
    assert read('{"a": 1}', folder=folder) == TaskInput({"a": 1}, "--input")


def test_an_input_may_come_from_a_file_or_from_standard_input(folder: Path) -> None:
    assert read(f"@{folder}/input.json").values == {"name": "file"}
    assert read("-", stdin='{"a": 2}') == TaskInput({"a": 2}, "standard input")


def test_settings_are_laid_over_the_input_in_their_order(folder: Path) -> None:
    found = read(None, "name=first", "name=second", "count=3", folder=folder)

    assert found.values == {"name": "second", "count": 3}
    assert found.source.endswith("input.json with name, count set")


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("a=1", {"a": 1}),
        ("a=1.5", {"a": 1.5}),
        ("a=true", {"a": True}),
        ("a=null", {"a": None}),
        ("a=world", {"a": "world"}),
        ('a="1"', {"a": "1"}),
        ("a=", {"a": ""}),
        ("a=007", {"a": "007"}),
        ("a=NaN", {"a": "NaN"}),
        ("a=b=c", {"a": "b=c"}),
        ('a=["x", 2]', {"a": ["x", 2]}),
        ("a.b.c=1", {"a": {"b": {"c": 1}}}),
    ],
)
def test_a_setting_is_json_if_it_can_be_and_text_otherwise(setting: str, expected: dict[str, Any]) -> None:
    assert read(None, setting).values == expected


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.text(st.characters(exclude_categories=["Cs"]))))
def test_any_text_can_be_set_as_quoted_json(values: dict[str, str]) -> None:
    import json

    assert read(None, *(f"{key}={json.dumps(value)}" for key, value in values.items())).values == values


def test_a_dotted_setting_keeps_its_neighbours() -> None:
    assert read('{"customer": {"id": "C-1", "tier": "gold"}}', "customer.id=C-2").values == {
        "customer": {"id": "C-2", "tier": "gold"}
    }


@pytest.mark.parametrize("setting", ["name", "=1", ".a=1", "a..b=1"])
def test_a_setting_without_a_key_and_value_is_refused_with_examples(setting: str) -> None:
    with pytest.raises(UsageError, match="is not KEY=VALUE") as caught:
        read(None, setting)

    assert "--set name=world" in str(caught.value.hint)


def test_nothing_can_be_set_inside_what_is_no_object() -> None:
    with pytest.raises(UsageError, match="`a` is not an object"):
        read(None, "a=1", "a.b=2")


def test_broken_json_is_shown_with_a_caret() -> None:
    with pytest.raises(UsageError) as caught:
        read('{"a": 1,\n "b" 2}')

    assert "line 2, column 6" in caught.value.message
    assert caught.value.message.endswith(' "b" 2}\n       ^')


def test_a_file_name_without_its_sign_is_recognized(folder: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read(f"{folder}/input.json")

    assert caught.value.hint == f"to read the file, write --input @{folder}/input.json"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ("[1]", "is a list, expected an object"),
        ("12", "is a number, expected an object"),
        ("null", "is null, expected an object"),
        ('{"a": 1, "a": 2}', "the key 'a' occurs twice"),
        ('{"a": Infinity}', "Infinity is not JSON"),
        ("@no/such/file.json", "no/such/file.json cannot be read: No such file"),
        ("[" * 100_000, "cannot be used"),
    ],
)
def test_what_is_no_object_is_refused_in_words(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read(text)


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes('{"a": "é"}'.encode("latin-1"))

    with pytest.raises(UsageError, match="is not UTF-8"):
        read(f"@{tmp_path}/latin.json")
