"""Order of Tasker's releases, which decides who may replace the SQL in a database (rule 24)."""

from __future__ import annotations

import re
from functools import lru_cache

_PARTS = re.compile(r"(\d+(?:\.\d+)*)[.-]?(dev|a|b|rc|post)?[.-]?(\d*)")
_STAGES = ("dev", "a", "b", "rc", "", "post")
Order = tuple[tuple[int, ...], int, int]


@lru_cache(64)  # compared for every record of a database, most of which have the same release
def release_order(release: str) -> Order:
    """Return the sort key of a release; an invalid one sorts before all others."""
    found = _PARTS.match(release)
    if found is None:
        return ((), 0, 0)
    numbers, stage, count = found.groups(default="")
    significant = re.sub(r"(\.0+)+$", "", numbers)  # 1.0 equals 1.0.0
    return tuple(int(number) for number in significant.split(".")), _STAGES.index(stage), int(count or 0)
