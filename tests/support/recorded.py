"""Recorded texts: the difference of a file shows what a change means for users."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
VARIABLE = "TASKER_RECORD"


def assert_recorded(folder: str, texts: Mapping[str, str]) -> None:
    """Compare each text with the file of its name; with TASKER_RECORD in the environment, write the files instead."""
    if os.environ.get(VARIABLE):
        (RECORDED / folder).mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (RECORDED / folder / f"{name}.txt").write_text(text, encoding="utf-8")
        return
    difference = [line for name, text in texts.items() for line in _difference(RECORDED / folder / f"{name}.txt", text)]
    assert not difference, "\n".join([*difference, f"If this is intended, record it: {VARIABLE}=1 pytest ..."])


def _difference(path: Path, text: str) -> list[str]:
    recorded = path.read_text("utf-8") if path.exists() else ""
    return [
        *unified_diff(recorded.splitlines(), text.splitlines(), f"recorded {path.name}", "printed", lineterm="", n=8)
    ]
