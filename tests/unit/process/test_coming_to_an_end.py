"""What must come to its end does so, whoever is cancelled while waiting for it; but nothing waits for ever."""

from __future__ import annotations

import asyncio

import pytest

from tasker.process.stopping import to_its_end


async def test_what_hangs_is_cut_off_when_its_time_is_over() -> None:
    begun, ended = asyncio.Event(), list[str]()

    async def hangs() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cut off")

    waiting = asyncio.create_task(to_its_end(hangs(), seconds=0.01))
    await begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0)
    assert ended == ["cut off"]


async def test_who_is_not_cancelled_gets_what_it_returns_or_raises() -> None:
    async def returns() -> int:
        return 7

    async def fails() -> None:
        raise ValueError("no")

    assert await to_its_end(returns()) == 7
    with pytest.raises(ValueError, match="no"):
        await to_its_end(fails())
