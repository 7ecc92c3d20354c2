"""Aligned columns of text, with or without colour."""

from __future__ import annotations

from collections.abc import Sequence

import click


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Render rows below their headings, two spaces between columns.

    The last cell of a shorter row is a note, which may span the columns that follow.
    """
    columns = range(len(headings))
    aligned = [headings, *(row if len(row) == len(headings) else row[:-1] for row in rows)]
    widths = [max(_width(row[column]) for row in aligned if column < len(row)) for column in columns]
    lines = [click.style(_line(headings, widths), bold=True), *(_line(row, widths) for row in rows)]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=False)]
    return "  ".join(padded).rstrip()


def _width(cell: str) -> int:
    return len(click.unstyle(cell))
