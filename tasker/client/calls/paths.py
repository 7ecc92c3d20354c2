"""URL paths of the API, built from names and identifiers."""

from __future__ import annotations

from urllib.parse import quote

from tasker.errors import UsageError


def path(beginning: str, *parts: str) -> str:
    """Join the parts, each quoted as one path segment. Raises `UsageError` for an empty or invalid part."""
    return "/".join([beginning, *map(segment, parts)])


def segment(part: str) -> str:
    """Quote one segment of a path. Raises `UsageError` if it is empty or invalid."""
    if not part or part in (".", "..") or any("\ud800" <= character <= "\udfff" for character in part):
        raise UsageError(f"{part!r} is not a name or an id")
    return quote(part, safe="")
