"""Who may be posted to when: several at a time, one task's in order, and nobody while the endpoint rests."""

from __future__ import annotations

import asyncio

from tasker_webhooks.turns import Breaker, Turns


async def idle() -> None:
    """Let everybody go on as far as they can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_so_many_have_a_turn_at_a_time_and_of_one_key_one() -> None:
    turns, begun, go = Turns(2), list[str](), asyncio.Event()

    async def one(name: str) -> None:
        async with turns.turn(name[0]):
            begun.append(name)
            await go.wait()

    running = [asyncio.ensure_future(one(name)) for name in ("a1", "a2", "a3", "b1", "c1")]
    await idle()
    assert begun == ["a1", "b1"], "who waits for its key takes up no place"

    go.set()
    await asyncio.gather(*running)
    assert [name for name in begun if name[0] == "a"] == ["a1", "a2", "a3"]
    assert sorted(begun) == ["a1", "a2", "a3", "b1", "c1"]


async def test_requests_that_were_under_way_when_it_opened_make_the_rest_no_longer() -> None:
    now = [0.0]
    breaker = Breaker(lambda: now[0])

    opened = [breaker.failed() for _ in range(9)]

    assert opened == [False] * 4 + [True] + [False] * 4
    assert 0 < breaker.seconds <= 36
    breaker.succeeded()
    assert (breaker.seconds, breaker.is_open) == (0, False)


async def test_after_a_rest_one_request_asks_and_the_others_go_when_it_was_taken() -> None:
    now = [0.0]
    breaker, under_way, go = Breaker(lambda: now[0]), list[int](), asyncio.Event()
    for _ in range(5):
        breaker.failed()
    now[0] += 60

    async def one(number: int) -> None:
        async with breaker.turn():
            under_way.append(number)
            await go.wait()
            breaker.succeeded()

    running = [asyncio.ensure_future(one(number)) for number in range(4)]
    await idle()
    assert under_way == [0]

    go.set()
    await asyncio.gather(*running)
    assert sorted(under_way) == [0, 1, 2, 3]
