"""Line numbers of keys in a TOML file, which the standard library's parser does not provide."""

from __future__ import annotations

import re

_HEADER = re.compile(r"\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")


def line_of(text: str, path: str) -> int | None:
    """Return the number, from 1, of the line that sets the dotted path or else the nearest table above it."""
    places = _places(text)
    parts = path.partition("[")[0].split(".")
    for end in range(len(parts), 0, -1):
        if line := places.get(".".join(parts[:end])):
            return line
    return None


def _places(text: str) -> dict[str, int]:
    table, places = "", dict[str, int]()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = _plain(header[1])
            places.setdefault(table, number)
        elif key := _KEY.match(line):
            places.setdefault(f"{table}.{_plain(key[1])}".lstrip("."), number)
    return places


def _plain(dotted: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in dotted.split("."))
