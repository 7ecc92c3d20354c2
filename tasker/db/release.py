"""The order of Tasker's releases: whose SQL a database holds decides who may replace it (rule 24)."""

from __future__ import annotations

import re
from functools import lru_cache

_PARTS = re.compile(r"(\d+(?:\.\d+)*)[.-]?(dev|a|b|rc|post)?[.-]?(\d*)")
_STAGES = ("dev", "a", "b", "rc", "", "post")
Order = tuple[tuple[int, ...], int, int]


@lru_cache(64)  # every record of a database is compared by it, and most are of one release
def release_order(release: str | None) -> Order:
    """What releases are compared by; one that is unknown, or no release's name, comes before all others."""
    found = _PARTS.match(release or "")
    if found is None:
        return ((), 0, 0)
    numbers, stage, count = found.groups(default="")
    significant = re.sub(r"(\.0+)+$", "", numbers)  # 1.0 is 1.0.0
    return tuple(int(number) for number in significant.split(".")), _STAGES.index(stage), int(count or 0)
