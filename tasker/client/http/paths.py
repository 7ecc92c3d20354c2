"""Paths of the interface from names and identifiers."""

from __future__ import annotations

from urllib.parse import quote

from tasker.errors import UsageError


def path(beginning: str, *parts: str) -> str:
    """The path with these parts, each of which stays one whatever is in it. Raises `UsageError` for an empty one."""
    for part in parts:
        if not part or part in (".", "..") or any("\ud800" <= each <= "\udfff" for each in part):
            raise UsageError(f"{part!r} is no name and no identifier")
    return "/".join([beginning, *(quote(part, safe="") for part in parts)])
