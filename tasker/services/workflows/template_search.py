"""Search of templates by file name patterns (`common.task_templates.search_paths`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from glob import iglob
from importlib.util import find_spec
from pathlib import Path

from tasker.errors import UsageError
from tasker.installed import offered

GROUP = "tasker.templates"
_ALTERNATIVES = re.compile(r"\{([^{}]*)\}")


def search(patterns: Sequence[str]) -> list[Path]:
    """Return the files that match at least one pattern, sorted and without duplicates.

    `*` matches part of a name, `**` folders of any depth, `{a,b}` each of its parts. A relative pattern starts in the
    current folder.
    """
    names = {
        name for pattern in patterns for expansion in expanded(pattern) for name in iglob(expansion, recursive=True)
    }
    return sorted(path for path in map(Path, names) if path.is_file())


def installed_templates() -> list[Path]:
    """Return the template folders of installed packages, without duplicates, in the order of their entry points' names.

    The value of an entry point is the package with the folder: `shop = "shop.workflows"`. Raises `UsageError` if the
    package does not exist.
    """
    folders = [folder for point in offered(GROUP) for folder in _folders(point.module)]
    return list(dict.fromkeys(folders))


def _folders(package: str) -> list[Path]:
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.submodule_search_locations is None:
        raise UsageError(
            f"the entry point {GROUP} names {package}, which is not a package",
            hint="expected the package that contains the templates",
        )
    return [Path(place) for place in spec.submodule_search_locations]


def expanded(pattern: str) -> Iterator[str]:
    """Yield the pattern for each choice of its alternatives, the innermost first."""
    match = _ALTERNATIVES.search(pattern)
    if match is None:
        yield pattern
        return
    for choice in match[1].split(","):
        yield from expanded(pattern[: match.start()] + choice.strip() + pattern[match.end() :])
