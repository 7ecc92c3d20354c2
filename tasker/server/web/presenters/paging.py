"""Lists in numbered pages."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from fastapi import Query

PER_PAGE = 50
PageNumber = Annotated[int, Query(alias="page", ge=1, le=10_000)]
"""Counted from 1."""


class NumberedPage(NamedTuple):
    """A page of a list: its number, how many rows it shows, and whether there are more behind it."""

    number: int
    rows: int
    has_next: bool

    @property
    def first(self) -> int:
        """The number of the first row, counted from 1."""
        return offset_of(self.number) + 1

    @property
    def last(self) -> int:
        """The number of the last row."""
        return offset_of(self.number) + self.rows


def offset_of(number: int) -> int:
    """Return how many rows are on the pages before this one."""
    return (number - 1) * PER_PAGE
