"""What a worker may take on: its free slots, and less while something holds it back."""

from __future__ import annotations

import asyncio

import pytest

from tasker.execution.slots import Slots


def test_what_is_held_back_is_not_free_until_every_reason_is_gone() -> None:
    slots = Slots(10)
    slots.settle(slots.reserve(3), 3)
    slots.throttle("buffer")
    slots.throttle("breaker")
    assert (slots.free, slots.reserve()) == (0, 0)
    slots.unthrottle("buffer")
    assert slots.free == 0
    slots.unthrottle("breaker")
    slots.unthrottle("breaker")

    assert slots.free == 7


def test_a_hold_may_let_a_few_pass() -> None:
    slots = Slots(10)
    slots.throttle("breaker", at_most=1)
    assert slots.free == 1
    slots.settle(slots.reserve(), 1)
    assert slots.free == 0
    slots.finish()

    assert slots.free == 1


async def test_whoever_waits_for_a_slot_is_woken_when_the_hold_is_lifted() -> None:
    slots = Slots(1)
    slots.throttle("buffer")
    waiting = asyncio.create_task(slots.wait_free())
    await asyncio.sleep(0)
    assert not waiting.done()
    slots.unthrottle("buffer")

    await asyncio.wait_for(waiting, 30)


def test_holds_are_counted_by_their_reason() -> None:
    slots = Slots(1)
    for _ in range(2):
        slots.throttle("breaker")
        slots.throttle("breaker", at_most=1)
        slots.unthrottle("breaker")

    assert slots.holds == {"breaker": 2}


async def test_slots_are_idle_once_nothing_runs_and_no_request_is_under_way() -> None:
    slots = Slots(2)
    assert slots.idle
    reserved = slots.reserve(1)
    waiting = asyncio.create_task(slots.wait_idle())
    await asyncio.sleep(0)
    slots.settle(reserved, 1)
    await asyncio.sleep(0)
    assert not waiting.done(), "the request has brought a step"
    slots.finish()

    await asyncio.wait_for(waiting, 30)
    assert slots.idle


def test_a_hold_that_lets_many_pass_gives_no_more_slots_than_there_are() -> None:
    slots = Slots(2)
    slots.throttle("breaker", at_most=50)

    assert slots.free == 2


def test_a_claim_leaves_slots_for_what_results_hand_over_meanwhile() -> None:
    def left(concurrency: int, running: int) -> int:
        slots = Slots(concurrency)
        slots.settle(slots.reserve(running), running)
        return slots.claimable_slots

    assert (left(2, 1), left(5, 1), left(201, 1)) == (1, 3, 184)
    assert left(200, 0) == 200, "nothing runs that could hand over anything"


def test_where_tasks_are_submitted_neither_a_claim_nor_a_result_sets_all_slots_aside() -> None:
    slots = Slots(200)
    assert slots.claimable_slots == 200
    slots.reserve_for_submission()
    assert slots.claimable_slots == 184
    with slots.reserve_for_flush(1, waits=False):
        assert slots.free == 16
    few = Slots(3)
    few.reserve_for_submission()
    assert few.claimable_slots == 3, "of few slots none stays free for what may not come"


def test_several_requests_at_once_leave_as_much_room_for_a_submission_as_one() -> None:
    slots = Slots(200)
    slots.reserve_for_submission()
    look = slots.reserve(slots.claimable_slots)
    assert (slots.free, slots.claimable_slots) == (16, 0)
    slots.reserve(1)
    assert slots.claimable_slots == 0
    slots.settle(look, 150)
    assert (slots.free, slots.claimable_slots) == (49, 37)


async def test_a_claim_waits_for_the_results_that_are_brought_while_few_slots_are_free() -> None:
    slots = Slots(10)
    slots.settle(slots.reserve(8), 8)
    with slots.reserve_for_flush(2, waits=False) as reservation:
        waiting = asyncio.create_task(slots.wait_claimable())
        slots.finish(2)
        await asyncio.sleep(0)
        assert not waiting.done()
        slots.finish(5)
        await asyncio.wait_for(waiting, 30)
        reservation.used = 1

    assert (slots.running, slots.free) == (2, 8)


async def test_a_claim_does_not_wait_for_results_that_wait_for_a_locked_task() -> None:
    slots = Slots(10)
    slots.settle(slots.reserve(10), 10)
    with slots.reserve_for_flush(1, waits=True):
        slots.finish()
        await asyncio.wait_for(slots.wait_claimable(), 30)
        assert slots.claimable_slots == 1


def test_a_claim_leaves_the_slots_that_the_children_of_waiting_results_will_take() -> None:
    slots = Slots(10)
    slots.reserved_for_results = 7
    assert (slots.free, slots.claimable_slots) == (10, 3)
    slots.reserved_for_results = 12
    assert slots.claimable_slots == 0


@pytest.mark.parametrize(
    ("running", "promised", "results", "offered"),
    [(0, 0, 1, 100), (20, 0, 1, 40), (0, 20, 1, 50), (20, 0, 60, 60), (20, 0, 500, 80), (100, 0, 500, 0)],
)
def test_what_is_brought_beside_other_work_leaves_slots_for_claims(
    running: int, promised: int, results: int, offered: int
) -> None:
    slots = Slots(100)
    slots.settle(slots.reserve(running), running)
    slots.reserved_for_results = promised

    with slots.reserve_for_flush(results, waits=False) as reservation:
        assert reservation.slots == offered
    assert slots.free == 100 - running
