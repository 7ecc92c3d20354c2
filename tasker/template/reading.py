"""What reading a document by the model yields: plain values, and for every path its place in the file."""

from __future__ import annotations

from tasker.template.diagnostics import Place, Report

Path = tuple[str | int, ...]
"""Canonical keys and list positions, from the root of the document."""


class Reading:
    """The places of the values and keys of one document, by canonical path, and where to report problems."""

    def __init__(self, report: Report, root: Place) -> None:
        self.report = report
        self._values: dict[Path, Place] = {(): root}
        self._keys: dict[Path, Place] = {}

    def mark(self, path: Path, value: Place, key: Place | None = None) -> None:
        """Remember where the value, and its key if it has one, stands."""
        self._values[path] = value
        if key is not None:
            self._keys[path] = key

    def value(self, *path: str | int) -> Place:
        """The place of the value, or of the nearest mapping or list around it."""
        while path not in self._values:
            path = path[:-1]
        return self._values[path]

    def key(self, *path: str | int) -> Place:
        """The place of the key, or of the value where there is no key."""
        return self._keys.get(path) or self.value(*path)

    def has(self, *path: str | int) -> bool:
        """True when the document has something there, readable or not."""
        return path in self._values
