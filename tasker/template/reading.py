"""State of reading a document: for every path its position in the file."""

from __future__ import annotations

from tasker.template.diagnostics import Position, Report

Path = tuple[str | int, ...]
"""Canonical keys and list positions from the root of the document."""


class DocumentReading:
    """Positions of the values and keys of one document by canonical path, and the report for problems."""

    def __init__(self, report: Report, root: Position) -> None:
        self.report = report
        self._values: dict[Path, Position] = {(): root}
        self._keys: dict[Path, Position] = {}

    def mark(self, path: Path, value: Position, key: Position | None = None) -> None:
        """Record the position of the value and, if it has one, of its key."""
        self._values[path] = value
        if key is not None:
            self._keys[path] = key

    def value(self, *path: str | int) -> Position:
        """Return the position of the value, or of the nearest mapping or list around it."""
        while path not in self._values:
            path = path[:-1]
        return self._values[path]

    def key(self, *path: str | int) -> Position:
        """Return the position of the key, or of the value if there is no key."""
        return self._keys.get(path) or self.value(*path)

    def has(self, *path: str | int) -> bool:
        """Return whether the document has a value there, readable or not."""
        return path in self._values
