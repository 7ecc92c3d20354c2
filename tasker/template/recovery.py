"""Reading on behind a syntax error, so that one message does not hide the next.

Some mistakes can be taken out of the text without moving anything: a tab becomes a space, a colon too much becomes a
space, `{{ ... }}` becomes a placeholder. What is read then is checked like any other document, and never compiled.
"""

from __future__ import annotations

import re

from tasker.template.diagnostics import Place

BRACES = re.compile(r"(?:^|[:,\[]\s|-\s)\s*(\{\{.*?)\s*(?:\s#.*)?$")
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

    def remove_tab(self, place: Place, offset: int) -> bool:
        """Replace the tab by a space; in front of a line's text this may change what belongs to what."""
        before = self.text[offset - place.column + 1 : offset]
        self.reliable = self.reliable and bool(before.strip())
        return self._patch(place, offset, 1, " ")

    def remove_colon(self, place: Place, offset: int) -> bool:
        """Replace a colon inside a value by a space."""
        return self._patch(place, offset, 1, " ") if self.text[offset : offset + 1] == ":" else False

    def remove_braces(self, place: Place, offset: int) -> bool:
        """Replace `{{ ... }}` and the rest of the value by a placeholder."""
        self.placeholders.add((place.line, place.column))
        return self._patch(place, offset, place.length, "x")

    def _patch(self, place: Place, offset: int, length: int, filler: str) -> bool:
        self.text = self.text[:offset] + filler * length + self.text[offset + length :]
        self.lines.add(place.line)
        return len(self.lines) < MAX_PATCHES
