"""Values as text for messages, whatever they are: nothing here raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def printable(value: Any) -> str:
    """`str(value)`; of a value that cannot be shown, its class and what asking it raised."""
    return _asked(str, value)


def shown(value: Any) -> str:
    """The beginning of `repr(value)`: 80 characters."""
    return _asked(repr, value)[:80]


def described(value: Any) -> str:
    """The value's class with the beginning of its `repr`, for messages that say what was found."""
    return "None" if value is None else f"{type(value).__name__} ({shown(value)})"


def _asked(form: Callable[[Any], str], value: Any) -> str:
    try:
        return form(value)
    except Exception as defect:
        return f"{type(value).__name__}, which cannot be shown: asking it raised {type(defect).__name__}"
