"""Copies of values that somebody else keeps."""

from __future__ import annotations

from typing import Any


def own_copy(value: Any) -> Any:
    """A copy that a handler may change without the next handler seeing it; cheap for flat values."""
    if isinstance(value, dict):
        return {key: own_copy(item) if isinstance(item, (dict, list)) else item for key, item in value.items()}
    if isinstance(value, list):
        return [own_copy(item) if isinstance(item, (dict, list)) else item for item in value]
    return value
