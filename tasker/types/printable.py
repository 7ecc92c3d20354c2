"""Text forms of arbitrary values for messages; nothing here raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def printable(value: Any) -> str:
    """Return `str(value)`; if that fails, the value's class and the class of the exception."""
    return _asked(str, value)


def shown(value: Any) -> str:
    """Return the first 80 characters of `repr(value)`."""
    return _asked(repr, value)[:80]


def described(value: Any) -> str:
    """Return the value's class and the beginning of its `repr`, for error messages."""
    return "None" if value is None else f"{type(value).__name__} ({shown(value)})"


def _asked(form: Callable[[Any], str], value: Any) -> str:
    try:
        return form(value)
    except Exception as defect:
        return f"{type(value).__name__}, which cannot be shown: asking it raised {type(defect).__name__}"
