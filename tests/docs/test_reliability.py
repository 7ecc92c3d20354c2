"""The page on reliability names tests that exist, and says of each scenario what shows it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.tables import for_each

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
SHOWN = re.compile(r"\[(\w+)\]\(\.\./((?:tests|tasker/testing)/[\w/]+\.py)\)(?: `(\w+)`)?")


def rows() -> list[str]:
    """The rows of the tables whose last column names tests."""
    text = PAGE.read_text("utf-8").partition("## What is not there")[0]
    table = [line for line in text.splitlines() if line.startswith("| ")]
    return [line for line in table if not line.startswith("| What happens")]


@for_each(rows())
def test_what_shows_a_scenario_exists(row: str) -> None:
    shown = SHOWN.findall(row.split(" | ")[-1])

    assert shown, "name a test"
    for title, path, name in shown:
        text = (ROOT / path).read_text("utf-8")
        assert title == Path(path).stem
        assert f"def {name}(" in text or not name, f"{path} has no test {name}"


def test_every_test_of_the_reliability_suites_is_on_the_page() -> None:
    page = PAGE.read_text("utf-8")
    files = [*(ROOT / "tests/acceptance/reliability").glob("test_*.py"), *(ROOT / "tests/chaos").glob("test_*.py")]
    tests = {
        name for file in files for name in re.findall(r"^(?:async )?def (test_\w+)", file.read_text("utf-8"), re.M)
    }

    assert {name for name in tests if name not in page} == {
        "test_the_clock_of_such_a_process_is_wrong_and_its_timers_are_not"
    }
