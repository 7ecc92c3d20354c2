"""Bisecting of a batch that the database refuses, until the refused item is alone; the others are written (rule 5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from tasker.db.connection import DataRefused

Item = TypeVar("Item")


async def halved(
    items: Sequence[Item],
    write: Callable[[Sequence[Item]], Awaitable[None]],
    refuse: Callable[[Item, DataRefused], Awaitable[None]],
) -> None:
    """Write the items together; if their values are refused, write each half alone.

    `refuse` is called for each item that is refused alone.
    """
    if not items:
        return
    try:
        await write(items)
    except DataRefused as error:
        if len(items) == 1:
            await refuse(items[0], error)
            return
        middle = len(items) // 2
        await halved(items[:middle], write, refuse)
        await halved(items[middle:], write, refuse)
