"""A batch with a value that the database refuses is halved until the culprit is alone; the others go on (rule 5)."""

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
    """Write the items together; when their values are refused, each half by itself. `refuse` gets who is alone then."""
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
