"""How Tasker is installed: whatever tells it names the distribution and an extra that exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tasker.version import DISTRIBUTION

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SAID = re.compile(r"pip install [^\n`]*?['\"]?\b(tasker[\w-]*)(?:\[([\w,]+)\])?(?![\w/.-])")
FOLDERS = ("tasker", "backends", "plugins", "compat", "docs", "workflows", "config")


def said() -> list[tuple[Path, str, str]]:
    files = [
        path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in {".md", ".py", ".toml"}
    ]
    texts = [(path, path.read_text("utf-8")) for path in [*files, *ROOT.glob("*.md")]]
    return [(path, *found) for path, text in texts for found in SAID.findall(text)]


def test_the_distribution_is_not_called_as_somebody_elses() -> None:
    assert PROJECT["name"] == DISTRIBUTION == "tasker-engine"
    assert set(PROJECT["scripts"]) == {"tasker", "tasker-ctl"}


def test_every_page_and_hint_installs_this_distribution_with_extras_that_exist() -> None:
    found = said()

    assert {path.name for path, *_ in found} >= {"running-a-fleet.md", "messaging-redis.md"}
    for path, name, extras in found:
        assert name == DISTRIBUTION, path
        assert set(filter(None, extras.split(","))) <= set(PROJECT["optional-dependencies"]), path
