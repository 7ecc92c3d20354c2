"""Templates found by patterns of file names (`common.task_templates.search_paths`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from glob import iglob
from pathlib import Path

_ALTERNATIVES = re.compile(r"\{([^{}]*)\}")


def search(patterns: Sequence[str]) -> list[Path]:
    """The files that match one of the patterns, each once, sorted.

    `*` stands for a part of a name, `**` for folders of any depth, `{a,b}` for each of its parts. A relative pattern
    begins in the current folder.
    """
    names = {name for pattern in patterns for each in expanded(pattern) for name in iglob(each, recursive=True)}
    return sorted(path for path in map(Path, names) if path.is_file())


def expanded(pattern: str) -> Iterator[str]:
    """The pattern for each choice of its alternatives, the innermost first."""
    match = _ALTERNATIVES.search(pattern)
    if match is None:
        yield pattern
        return
    for choice in match[1].split(","):
        yield from expanded(pattern[: match.start()] + choice.strip() + pattern[match.end() :])
