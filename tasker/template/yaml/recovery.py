"""Reading on behind a syntax error, so that one message does not hide the next.

Some mistakes can be taken out of the text without moving anything: a tab becomes a space, a colon too much becomes a
space, `{{ ... }}` becomes a placeholder. What is read then is checked like any other document, and never compiled.
"""

from __future__ import annotations

from tasker.template.diagnostics import Position

MAX_PATCHES = 100


class Recovery:
    """The text as far as it has been repaired."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: set[int] = set()
        """The lines that were changed."""
        self.placeholders: set[tuple[int, int]] = set()
        """Line and column of values that stand for something unreadable."""
        self.reliable = True
        """False when the structure may not be what was meant: then nothing more should be said about it."""
        self._patches = 0

    def remove_tab(self, place: Position, offset: int) -> bool:
        """Replace the tab by a space; in front of a line's text this may change what belongs to what."""
        self.reliable = self.reliable and bool(self._before(place, offset).strip())
        return self._patch(place, offset, " ")

    def remove_colon(self, place: Position, offset: int) -> bool:
        """Replace a colon by a space if it stands inside a value; any other is a matter of indentation."""
        inside_value = ": " in self._before(place, offset) and self.text[offset : offset + 1] == ":"
        return inside_value and self._patch(place, offset, " ")

    def remove_braces(self, place: Position, offset: int) -> bool:
        """Replace `{{ ... }}` and the rest of the value by a placeholder."""
        self.placeholders.add((place.line, place.column))
        return self._patch(place, offset, "x" * place.length)

    def _before(self, place: Position, offset: int) -> str:
        return self.text[offset - place.column + 1 : offset]

    def _patch(self, place: Position, offset: int, filler: str) -> bool:
        self.text = self.text[:offset] + filler + self.text[offset + len(filler) :]
        self.lines.add(place.line)
        self._patches += 1
        return self._patches < MAX_PATCHES
