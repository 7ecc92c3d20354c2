"""The file of the journal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Journal:
    """A file that lines are added to, whole ones, by several processes at a time.

    It is opened for each line: whoever rotates it moves it away, and the next line begins a new one.
    """

    def __init__(self, path: str) -> None:
        """Raises `OSError` when the file cannot be opened to add to it."""
        self._path = Path(path).expanduser().absolute()  # a handler may change the folder of the process
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._add("")

    def write(self, line: Mapping[str, Any]) -> None:
        """Add a line. Raises `OSError` when it cannot be written."""
        self._add(json.dumps(line, ensure_ascii=False, default=str) + "\n")

    def _add(self, text: str) -> None:
        with self._path.open("ab", buffering=0) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
