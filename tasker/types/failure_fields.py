"""Conversion of a handler's values to the fields of a failure.

Nothing here raises: an exception would replace the failure, and be retried even if the failure is permanent.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from typing import Any

from tasker.types.printable import printable

NO = frozenset({"0", "f", "false", "n", "no", "off"})
"""Texts that mean False."""


def text_of(value: Any) -> str | None:
    """Return a message, type or code as text; an enum member is replaced by its value. None stays None."""
    plain = value.value if isinstance(value, Enum) else value
    return None if plain is None else printable(plain)


def flag_of(value: Any) -> bool:
    """Return whether the attempt may be retried. True if the value is unreadable, like the default of any failure."""
    if isinstance(value, str):
        return value.lower() not in NO
    try:
        return value is None or bool(value)
    except Exception:
        return True


def mapping_of(value: Any) -> dict[Any, Any]:
    """Return metadata as a dict; a value that is not a mapping is stored as text under `metadata`."""
    with suppress(Exception):
        if isinstance(value, Mapping) or not value:
            return dict(value or {})
    return {"metadata": printable(value)}
