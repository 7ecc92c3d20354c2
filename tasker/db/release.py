"""The order of Tasker's releases: whose SQL a database holds decides who may replace it (rule 24)."""

from __future__ import annotations

import re
from importlib.metadata import version

RELEASE = version("tasker")
"""This one."""
_PARTS = re.compile(r"(\d+(?:\.\d+)*)[.-]?(dev|a|b|rc|post)?[.-]?(\d*)")
_STAGES = ("dev", "a", "b", "rc", "", "post")
Order = tuple[tuple[int, ...], int, int]


def release_order(release: str | None) -> Order:
    """What releases are compared by; one that is unknown, or no release's name, comes before all others."""
    found = _PARTS.match(release or "")
    if found is None:
        return ((), 0, 0)
    numbers, stage, count = found.groups(default="")
    return tuple(int(number) for number in numbers.split(".")), _STAGES.index(stage), int(count or 0)
