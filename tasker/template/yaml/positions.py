"""Positions inside scalars: where in the file a character of a value is, in every style of YAML."""

from __future__ import annotations

import re

from tasker.template.diagnostics import Position
from tasker.template.yaml.nodes import LINE_BREAK

_PROPERTIES = re.compile(r"(?:[&!][^\s]*\s+)+")
_BLOCK = re.compile(r"[|>][^\r\n]*")
_ESCAPE = re.compile(r"\\(?:x.{2}|u.{4}|U.{8}|\r\n|.)", re.DOTALL)
_WHITE_ESCAPE = re.compile(
    r"\\(?:\r\n|[ntrNLP \t\r\n]|x(?:20|09|0[aA]|0[dD]|85)|u(?:0020|0009|000[aAdD]|0085|202[89]))"
)
_WHITE = " \t\r\n\x85\u2028\u2029"


def position_inside(source: str, place: Position, value: str, offset: int, length: int) -> Position:
    """Return the position of characters of a scalar that begins at `place`.

    Value and source are read side by side. They differ in white space (line breaks are folded) and in escapes, so that
    only other characters are compared. Returns `place` if the two do not fit, as for a repaired text.
    """
    lines = LINE_BREAK.split(source)
    starts = [0, *(match.end() for match in LINE_BREAK.finditer(source))]
    if place.line > len(lines):
        return place
    at = starts[place.line - 1] + place.column - 1
    if properties := _PROPERTIES.match(source, at):
        at = properties.end()
    style = source[at : at + 1]
    if style in ("|", ">") and (header := _BLOCK.match(source, at)):
        at = header.end()
    elif style in ("'", '"'):
        at += 1
    for character in value[:offset]:
        if character not in _WHITE:
            at = _after(source, _skipped(source, at, style), style)
    at = _skipped(source, at, style) if value[offset : offset + 1] not in _WHITE else at
    if at >= len(source):
        return place
    line = max(number for number, start in enumerate(starts) if start <= at)
    column = at - starts[line]
    return Position(line + 1, column + 1, max(1, min(length, len(lines[line]) - column)))


def _skipped(source: str, at: int, style: str) -> int:
    """Return the offset behind white space, also where it is escaped."""
    while at < len(source):
        if source[at] in _WHITE:
            at += 1
        elif style == '"' and (escape := _WHITE_ESCAPE.match(source, at)):
            at = escape.end()
        else:
            break
    return at


def _after(source: str, at: int, style: str) -> int:
    """Return the offset behind one character of the value."""
    if style == '"' and source[at : at + 1] == "\\" and (escape := _ESCAPE.match(source, at)):
        return escape.end()
    if style == "'" and source[at : at + 2] == "''":
        return at + 2
    return at + 1
