"""Unset is not the same as set to the default."""

from __future__ import annotations

from typing import Any


def is_set(table: Any, name: str) -> bool:
    """True when somebody set it, be it to its default."""
    return name in table.model_fields_set
