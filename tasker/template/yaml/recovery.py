"""Recovery from syntax errors, so that one error does not hide the next.

Some mistakes can be replaced without moving other text: a tab and a superfluous colon become a space, `{{ ... }}`
becomes a placeholder. The repaired text is checked like any other document, but never compiled.
"""

from __future__ import annotations

from tasker.template.diagnostics import Position

MAX_PATCHES = 100


class Recovery:
    """Text with the repairs made so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: set[int] = set()
        """Changed lines."""
        self.placeholders: set[tuple[int, int]] = set()
        """Line and column of placeholders for unreadable values."""
        self.reliable = True
        """False if the structure may not be what was meant: then no further problems are reported."""
        self._patches = 0

    def remove_tab(self, location: Position, offset: int) -> bool:
        """Replace the tab by a space; at the start of a line this may change the structure."""
        self.reliable = self.reliable and bool(self._before(location, offset).strip())
        return self._patch(location, offset, " ")

    def remove_colon(self, location: Position, offset: int) -> bool:
        """Replace a colon by a space if it is inside a value; any other colon is a matter of indentation."""
        inside_value = ": " in self._before(location, offset) and self.text[offset : offset + 1] == ":"
        return inside_value and self._patch(location, offset, " ")

    def remove_braces(self, location: Position, offset: int) -> bool:
        """Replace `{{ ... }}` and the rest of the value by a placeholder."""
        self.placeholders.add((location.line, location.column))
        return self._patch(location, offset, "x" * location.length)

    def _before(self, location: Position, offset: int) -> str:
        return self.text[offset - location.column + 1 : offset]

    def _patch(self, location: Position, offset: int, filler: str) -> bool:
        self.text = self.text[:offset] + filler + self.text[offset + len(filler) :]
        self.lines.add(location.line)
        self._patches += 1
        return self._patches < MAX_PATCHES
