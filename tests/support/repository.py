"""The files of this checkout, found without a look into environments and caches."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
HIDDEN = {".git", ".venv", ".tasker", ".hypothesis", "__pycache__", "dist", "build", "node_modules"}


@cache
def repository_files() -> tuple[Path, ...]:
    """Every file in order, relative to the root."""
    found = []
    for folder, below, names in os.walk(ROOT):
        below[:] = [name for name in below if name not in HIDDEN and not name.endswith("_cache")]
        found += [Path(folder, name).relative_to(ROOT) for name in names if name not in HIDDEN]
    return tuple(sorted(found))
