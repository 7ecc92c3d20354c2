"""Lines of a text as YAML counts them."""

from __future__ import annotations

import re

from tasker.template.diagnostics import Position

LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def line_of(text: str, number: int) -> str:
    """Return the line with this number, counted from 1; empty behind the end."""
    lines = LINE_BREAK.split(text)
    return lines[number - 1] if number <= len(lines) else ""


def place_of_offset(offset: int, text: str) -> Position:
    """Return the line and column of a character."""
    before = LINE_BREAK.split(text[:offset])
    return Position(len(before), len(before[-1]) + 1)
