"""A stream whose source fails when nobody reads it any more."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tasker.server.streams import Streams


@pytest.mark.parametrize("fails", ["before the end", "when it is cancelled", "when it is closed"])
async def test_error_of_an_abandoned_stream_is_not_left_unread(fails: str) -> None:
    unread = list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unread.append(context))
    go, at = asyncio.Event(), asyncio.Event()

    async def source() -> AsyncGenerator[int]:
        try:
            yield 1
            at.set()
            await go.wait()
            raise ValueError("before the end")
        except asyncio.CancelledError:
            raise ValueError(fails) from None
        finally:
            if fails == "when it is closed":
                raise ValueError(fails)

    async def read() -> None:
        async for _ in streams.through(source()):
            pass

    streams = Streams(1)
    reader = asyncio.create_task(read())
    await at.wait()
    if fails == "before the end":
        go.set()
        streams.close()
    reader.cancel()
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)
    for _ in range(10):
        await asyncio.sleep(0)
    del reader
    gc.collect()
    assert unread == []
