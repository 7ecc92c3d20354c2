"""Columns of text that line up, coloured or not."""

from __future__ import annotations

from collections.abc import Sequence

import click


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows below their headings, two spaces between columns."""
    widths = [max(_width(row[column]) for row in [headings, *rows]) for column in range(len(headings))]
    lines = [click.style(_line(headings, widths), bold=True), *(_line(row, widths) for row in rows)]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True)]
    return "  ".join(padded).rstrip()


def _width(cell: str) -> int:
    return len(click.unstyle(cell))
