"""Whatever comments, docstrings and pages name is there: modules, their contents, and files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("tasker", "backends", "plugins", "compat", "tests", "tools", "workflows", "docs")
SUFFIXES = {".py", ".md", ".sql"}
ABOUT_OUR_FILES = ["ARCHITECTURE.md", "docs/protocol.md", "docs/processes.md", "docs/decisions/*.md"]
"""Pages that name files below `tasker/` without saying so; other pages name files of their readers."""

DOTTED = re.compile(r"(?<![\w./\"'-])tasker((?:\.[A-Za-z_]\w*){2,})")
FILE = re.compile(r"(?<![\w./-])((?:tasker|backends|tests|tools|docs)/[\w/.-]*\.(?:py|sql|md))\b")
SHORT_FILE = re.compile(r"`([a-z_]+(?:/[a-z_]+)+(?:\.py|\.sql)?)`")


def pages() -> Iterator[Path]:
    yield from ROOT.glob("*.md")
    for folder in FOLDERS:
        yield from (path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES)


def places(pattern: re.Pattern[str], pages: Iterator[Path]) -> Iterator[tuple[str, str]]:
    for page in pages:
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
            for found in pattern.finditer(line):
                yield f"{page.relative_to(ROOT)}:{number}", found[1]


def exists(parts: list[str]) -> bool:
    """Whether `tasker.PARTS` is a module, or something in one; tables of the database begin with no module's name."""
    if not ((ROOT / "tasker" / parts[0]).is_dir() or (ROOT / "tasker" / f"{parts[0]}.py").is_file()):
        return True
    found: object = import_module("tasker")
    for depth, name in enumerate(parts):
        try:
            found = import_module(f"tasker.{'.'.join(parts[: depth + 1])}")
        except ModuleNotFoundError:
            if not hasattr(found, name):
                return isinstance(found, type)  # an attribute of its objects
            found = getattr(found, name)
    return True


def test_modules_and_their_contents_that_are_named_are_there() -> None:
    missing = [f"{place}: tasker{name}" for place, name in places(DOTTED, pages()) if not exists(name[1:].split("."))]

    assert not missing, "\n".join(missing)


def test_files_that_are_named_are_there() -> None:
    missing = [f"{place}: {name}" for place, name in places(FILE, pages()) if not list(ROOT.glob(name))]

    assert not missing, "\n".join(missing)


def test_the_map_shows_everything_that_lies_in_tasker() -> None:
    table = "".join(line for line in (ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines() if line[:3] == "| `")
    shown = set(re.findall(r"`(?:tasker/)?([\w.]+)`", table))
    packages = {path.parent.name for path in (ROOT / "tasker").glob("*/__init__.py")}
    there = packages | {path.name for path in (ROOT / "tasker").glob("[!_]*.py")}

    assert there - shown == set()


@pytest.mark.parametrize("pattern", ABOUT_OUR_FILES)
def test_files_that_a_page_about_the_code_names_are_there(pattern: str) -> None:
    named = list(places(SHORT_FILE, iter(sorted(ROOT.glob(pattern)))))
    missing = [
        f"{place}: {name}" for place, name in named if not ((ROOT / "tasker" / name).exists() or (ROOT / name).exists())
    ]

    assert named
    assert not missing, "\n".join(missing)


def test_every_decision_is_listed_and_numbered_in_order() -> None:
    folder = ROOT / "docs/decisions"
    records = [path.name for path in sorted(folder.glob("[0-9]*.md"))]
    listed = re.findall(r"\]\((\d[^)#]+)\)", (folder / "README.md").read_text("utf-8"))

    assert listed == records
    assert [name[:4] for name in records] == [f"{number:04}" for number in range(1, len(records) + 1)]
