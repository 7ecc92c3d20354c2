"""The file of the journal."""

from __future__ import annotations

import json
import os
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode
LOOK_SECONDS = 1.0
"""How often it is looked whether the file was moved away."""


class Journal:
    """A file that lines are added to, whole ones, by several processes at a time.

    Whoever rotates it moves it away: within a second the lines go to a new one.
    """

    def __init__(self, path: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises `OSError` when the file cannot be opened to add to it."""
        self._path = Path(path).expanduser().absolute()  # a handler may change the folder of the process
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._clock, self._looked_at = clock, clock()
        self._open()

    def write(self, line: Mapping[str, Any]) -> None:
        """Add a line. Raises `OSError` when it cannot be written."""
        if self._clock() - self._looked_at >= LOOK_SECONDS:
            self._looked_at = self._clock()
            if not self._is_there():
                self._closing()
                self._open()
        text = _encode(line) + "\n"
        os.write(self._file, text.encode("utf-8", "backslashreplace"))

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._closing = weakref.finalize(self, os.close, self._file)

    def _is_there(self) -> bool:
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return False
        own = os.fstat(self._file)
        return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)
