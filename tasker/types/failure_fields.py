"""The fields of a failure, of whatever a handler gave for them.

Nothing here raises: the exception would take the place of the failure, and be tried again where that one said not to.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from typing import Any

from tasker.types.printable import printable

NO = frozenset({"0", "f", "false", "n", "no", "off"})
"""What a text says that means False."""


def text_of(value: Any) -> str | None:
    """A message, type or code as text; an enumerated one is its value. None stays None."""
    plain = value.value if isinstance(value, Enum) else value
    return None if plain is None else printable(plain)


def flag_of(value: Any) -> bool:
    """Whether the attempt may be tried again. True where nothing readable says so: as for any failure."""
    if isinstance(value, str):
        return value.lower() not in NO
    try:
        return value is None or bool(value)
    except Exception:
        return True


def mapping_of(value: Any) -> dict[Any, Any]:
    """Metadata as a dict; what is no mapping is kept as text, below `metadata`."""
    with suppress(Exception):
        if isinstance(value, Mapping) or not value:
            return dict(value or {})
    return {"metadata": printable(value)}
