"""Location at which an exception was raised, read from the traceback stored with a failure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FRAME = re.compile(r'^[\s|+-]*File "(?P<file>.+?)", line (?P<line>\d+)(?:, in (?P<function>[^\n]*))?', re.MULTILINE)
_INSTALLED = re.compile(r"[/\\](site-packages|dist-packages|python3\.\d+)[/\\]|^<")
_TASKER = str(Path(__file__).parents[1])


def traceback_of(metadata: Mapping[str, Any]) -> str | None:
    """Return the traceback in a failure's metadata, or None."""
    text = metadata.get("traceback")
    return text if isinstance(text, str) else None


def exception_of(metadata: Mapping[str, Any]) -> str | None:
    """Return the exception's class and location, `ValueError at /srv/handlers.py:12`, or None without an exception.

    The location is the last frame of the user's code, or the last frame of all if every frame is in an installed
    package.
    """
    kind = metadata.get("exception_type")
    if not isinstance(kind, str):
        return None
    place = _location(traceback_of(metadata) or "")
    return f"{kind} at {place}" if place else kind


def raised_in(metadata: Mapping[str, Any]) -> str | None:
    """Return file and function of the same frame, `handlers.py charge`, or None without an exception."""
    for frame in _raising(traceback_of(metadata) or ""):
        return f"{frame['file'].replace(chr(92), '/').rpartition('/')[2]} {frame['function'] or ''}".rstrip()
    return None


def _location(text: str) -> str | None:
    for frame in _raising(text):
        return f"{frame['file']}:{frame['line']}"
    return None


def _raising(text: str) -> list[re.Match[str]]:
    """Return the frame to report in a list, or an empty list."""
    frames = list(_FRAME.finditer(text))
    user_frames = [
        frame for frame in frames if not (_INSTALLED.search(frame["file"]) or frame["file"].startswith(_TASKER))
    ]
    return (user_frames or frames)[-1:]
