"""Check whether a setting was set, even to its default."""

from __future__ import annotations

from typing import Any


def is_set(table: Any, name: str) -> bool:
    """Return whether the setting was set explicitly."""
    return bool(table.is_set(name))
