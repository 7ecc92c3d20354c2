"""The table "Where to find it" of ARCHITECTURE.md names files that exist and names that are in them."""

from __future__ import annotations

import re

from tests.support.repository import ROOT

ROW = re.compile(r"^\| .+ \| `([^`]+)` \| `([^`]+)` \|$", re.MULTILINE)


def answers() -> list[tuple[str, str]]:
    """Return the (path, name) pairs of the table."""
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    section = page.partition("## Where to find it")[2].partition("\n## ")[0]
    rows = ROW.findall(section)
    assert len(rows) == sum(line.startswith("| ") for line in section.splitlines()) - 1  # all but the head
    return [(path if path.startswith("backends/") else f"tasker/{path}", name) for path, name in rows]


def test_answers_name_existing_files_and_names() -> None:
    wrong = [
        f"{path}: {name}"
        for path, name in answers()
        if not (ROOT / path).is_file() or not re.search(rf"\b{name}\b", (ROOT / path).read_text("utf-8"))
    ]
    assert not wrong, "\n".join(wrong)
