"""Events that are dealt with side by side: nothing is settled that is not dealt with, and everything in the end."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from tasker.services.event_subscriptions import InFlightWindow


@given(st.sets(st.integers(1, 100), min_size=1).flatmap(lambda each: st.permutations(sorted(each))), st.data())
def test_what_is_settled_is_dealt_with_and_so_is_all_before_it(order: list[int], data: st.DataObject) -> None:
    settled, closed = [0], set[int]()

    async def settle(position: int) -> None:
        await asyncio.sleep(0)
        assert {each for each in order if each <= position} <= closed
        settled.append(position)

    async def run() -> None:
        window = InFlightWindow(0, len(order), settle)
        for position in sorted(order):
            await window.open(position)
        calls = []
        for position in order:
            closed.add(position)
            calls.append(asyncio.ensure_future(window.close(position)))
            if data.draw(st.booleans()):
                await asyncio.gather(*calls)
        await asyncio.gather(*calls)

    asyncio.run(run())
    assert settled == sorted(set(settled)), "each further than the last"
    assert settled[-1] == max(order)


async def test_behind_one_that_is_not_dealt_with_there_is_room_for_so_many_only() -> None:
    async def settle(_: int) -> None:
        """Nothing to do."""

    window = InFlightWindow(0, 2, settle)
    await window.open(1)
    await window.open(2)
    await window.close(2)

    third = asyncio.ensure_future(window.open(3))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not third.done()

    await window.close(1)
    await third
