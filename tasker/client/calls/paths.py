"""URL paths of the API, built from names and identifiers."""

from __future__ import annotations

from urllib.parse import quote

from tasker.errors import UsageError


def path(beginning: str, *parts: str) -> str:
    """Join the parts, each quoted as one path segment. Raises `UsageError` for an empty or invalid part."""
    for part in parts:
        if not part or part in (".", "..") or any("\ud800" <= character <= "\udfff" for character in part):
            raise UsageError(f"{part!r} is not a name or an id")
    return "/".join([beginning, *(quote(part, safe="") for part in parts)])
