"""What browsers get of other people's is what was chosen, and our own files name no other site."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tasker.server.web.site import FOLDER
from tests.support.tables import for_each
from tools import vendor

OWN = sorted(
    path
    for folder in (FOLDER, FOLDER.parent / "templates")
    for path in folder.rglob("*")
    if path.is_file() and "vendor" not in path.parts
)
ELSEWHERE = re.compile(r"(?:https?:)?//[\w-]+\.[\w.-]+")


def test_vendored_files_have_their_sums_and_licences() -> None:
    entries = tomllib.loads(vendor.LIST.read_text())["file"]
    assert entries
    assert list(vendor.differences(entries)) == []


def test_a_file_that_was_changed_or_that_nobody_named_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = tomllib.loads(vendor.LIST.read_text())["file"]
    for path in vendor.FOLDER.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(vendor, "FOLDER", tmp_path)
    (tmp_path / entries[0]["name"]).write_text("changed")
    (tmp_path / "stranger.js").write_text("")

    first, second = vendor.differences(entries)

    assert "run python -m tools.vendor" in first
    assert second == "stranger.js is not named in vendored.toml"


@for_each(OWN)
def test_nothing_of_ours_names_another_site(path: Path) -> None:
    text = path.read_text().replace("http://www.w3.org/2000/svg", "")
    assert ELSEWHERE.findall(text) == []
