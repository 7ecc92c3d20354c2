"""The rounds of promoting and sweeping behind their breaker: skipped while it is open, and nothing else is."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from tasker.engine.answers import DueAnswer
from tasker.errors import DatabaseError, DatabaseUnavailable
from tasker.orchestration.pending_work import ExclusiveTurns, PendingWork
from tasker.orchestration.upkeep import FIRST_SECONDS, LATE_SECONDS, OTHERS_SECONDS, Upkeep
from tasker.resilience.breakers import BreakerPolicies, Breakers
from tasker.template.plan import BreakerPolicy
from tests.unit.execution.bench import PATIENCE, FakeClock


class Rig:
    """A process whose rounds fail with `error`. `rounds` are those made, `said` what reached the server."""

    def __init__(self, error: DatabaseError | None = None) -> None:
        self.clock = FakeClock()
        self.error: DatabaseError | None = error
        self.answer: dict[str, Any] = {}
        self.rounds, self.sweeps = 0, 0
        self.may_end = asyncio.Event()
        """Whether a sweep that has begun ends."""
        self.may_end.set()
        self.said: list[str] = []
        policy = BreakerPolicy(failure_threshold=2, timeout_seconds=30, success_threshold=1)
        self.breaker = Breakers(self.clock, BreakerPolicies(task_readiness=policy, settle_seconds=0)).task_readiness
        here: Any = self
        self.schedule = PendingWork(self.clock)
        self.upkeep = Upkeep(
            here,
            here,
            ExclusiveTurns(here, "sweep", self.clock, random, 3600),
            here,
            self.schedule,
            self.clock,
            random,
            breaker=self.breaker,
            on_advanced=lambda _: None,
        )

    @property
    def connection(self) -> Rig:
        return self

    async def execute(self, statement: str, params: object = None) -> None:
        self.said.append(statement)

    @property
    def messaging(self) -> Rig:
        return self

    def provider_name(self) -> str:
        return "none"

    async def read(self, function: str, args: object) -> dict[str, Any]:
        if self.error:
            raise self.error
        return {"mine": True}

    def caller(self, slots: int = 0) -> None:
        """Nobody in particular."""

    async def offer(self, ask: Callable[[int], object]) -> DueAnswer:
        self.rounds += 1
        if self.error:
            raise self.error
        return DueAnswer.parse(self.answer)

    async def sweep(self, caller: object, between: object) -> Counter[str]:
        if self.error:
            raise self.error
        self.sweeps += 1
        await self.may_end.wait()
        return Counter()


async def until(true: Callable[[], bool], rig: Rig) -> None:
    """Wait for it; meanwhile there is always something due."""
    async with asyncio.timeout(PATIENCE):
        while not true():
            rig.schedule.due_in(0)
            await asyncio.sleep(0.001)


async def running(rig: Rig, then: Callable[[], Any]) -> None:
    task = asyncio.create_task(rig.upkeep.run())
    try:
        await then()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_open_a_round_is_skipped_and_sleepers_are_woken_all_the_same() -> None:
    rig = Rig(DatabaseError("canceling statement due to statement timeout"))

    async def look() -> None:
        await until(lambda: rig.upkeep.skipped > 0, rig)
        rig.schedule.wake({"payments"})
        await until(lambda: bool(rig.said), rig)
        assert rig.rounds == 2
        assert rig.said == ["select tasker.wake_v1(%s)"], "a server that is there is not asked whether it is"

        rig.error = None
        rig.clock.seconds += 30
        await until(rig.breaker.is_healthy, rig)

    await running(rig, look)


async def test_a_server_that_was_not_there_is_tried_as_soon_as_it_answers() -> None:
    rig = Rig(DatabaseUnavailable("cannot connect"))

    async def look() -> None:
        await until(lambda: rig.breaker.metrics().opened == 1, rig)
        rig.error = None
        await until(rig.breaker.is_healthy, rig)
        assert rig.said == ["select 1"]
        assert rig.clock.seconds == 100.0, "not a second of the breaker's time has passed"

    await running(rig, look)


async def test_whoever_was_to_be_woken_when_the_server_was_away_is_woken_once_it_is_back() -> None:
    rig = Rig(DatabaseUnavailable("cannot connect"))
    attempts = 0

    async def execute(statement: str, params: object = None) -> None:
        nonlocal attempts
        attempts += "wake" in statement
        if rig.error:
            raise rig.error
        rig.said.append(f"{statement} {params}")

    rig.execute = execute  # type: ignore[method-assign]

    async def look() -> None:
        rig.schedule.wake({"payments"})
        await until(lambda: attempts > 0, rig)
        rig.error = None
        await until(lambda: "select tasker.wake_v1(%s) (['payments'],)" in rig.said, rig)

    await running(rig, look)


async def test_workers_are_woken_when_a_message_that_was_sent_again_is_visible() -> None:
    rig = Rig()
    rig.schedule.wake_later({"one": 500.0, "two": 900.0})
    await rig.upkeep.wake_sleepers()
    assert rig.said == [], "nobody could claim it yet"

    rig.clock.seconds += 0.5
    await asyncio.wait_for(rig.schedule.wait(3600), PATIENCE)
    await rig.upkeep.wake_sleepers()
    await rig.upkeep.wake_sleepers()

    assert rig.said == ["select tasker.wake_steps_v1(%s::uuid[])"], "once"
    assert rig.schedule.take_steps() == [], "the other one is later"


async def test_a_process_begins_with_its_work_and_looks_for_retries_and_sweeps_a_moment_later() -> None:
    rig = Rig()

    async def look() -> None:
        rig.schedule.wake({"payments"})
        while not rig.said:
            await asyncio.sleep(0.001)
        assert (rig.said, rig.rounds) == (["select tasker.wake_v1(%s)"], 0), "who sleeps is woken at once"
        rig.clock.seconds += FIRST_SECONDS
        rig.schedule.wake({"payments"})
        while not rig.rounds:
            await asyncio.sleep(0.001)

    async with asyncio.timeout(PATIENCE):
        await running(rig, look)


async def pauses_of(rig: Rig, answers: list[dict[str, Any]]) -> list[float]:
    """The milliseconds until retries are looked for again, after each of the answers."""
    pauses = []
    for rig.answer in answers:
        await rig.upkeep.promote()
        pauses.append(round((rig.schedule.due_at - rig.clock.monotonic()) * 1000))
    return pauses


async def test_what_is_due_in_tasks_that_others_hold_is_asked_for_less_and_less_often() -> None:
    """A second is the longest pause there is anyhow, give or take the jitter between processes."""
    pauses = await pauses_of(Rig(), [{"passed_over": True}] * 10)

    assert pauses[:6] == [20, 40, 80, 160, 320, 640]
    assert all(640 < pause <= 1250 for pause in pauses[6:])


async def test_due_retries_that_nobody_could_promote_are_no_reason_to_hurry() -> None:
    assert await pauses_of(Rig(), [{"next_due_ms": 0}] * 3) == [20, 40, 80]


async def test_progress_makes_the_pauses_short_again() -> None:
    held, progress = {"passed_over": True}, {"promoted": 100, "next_due_ms": 0, "passed_over": True}

    assert await pauses_of(Rig(), [held, held, held, progress, held, held]) == [20, 40, 80, 1, 20, 40]


async def test_the_next_retry_is_waited_for_although_others_are_passed_over() -> None:
    assert await pauses_of(Rig(), [{"passed_over": True, "next_due_ms": 7}, {"next_due_ms": 300}]) == [7, 300]


async def test_a_process_that_stops_ends_the_round_under_way_and_begins_no_other_one() -> None:
    """What the round has committed is told then: cancelled in the middle of an answer, nobody would hear of it."""
    rig = Rig()
    rig.may_end.clear()

    async def stop() -> None:
        await asyncio.sleep(0)
        rig.clock.seconds += 2 * FIRST_SECONDS
        await until(lambda: rig.sweeps == 1, rig)
        drained = asyncio.create_task(rig.upkeep.drain())
        await asyncio.sleep(0)
        assert not drained.done()
        rig.may_end.set()
        await drained
        rounds = rig.rounds
        rig.clock.seconds += 10_000
        rig.schedule.wake({"payments"})
        await until(lambda: bool(rig.said), rig)
        assert (rig.sweeps, rig.rounds) == (1, rounds)

    await running(rig, stop)


async def pause_after(rig: Rig, answer: dict[str, Any]) -> float:
    """Seconds until the next look."""
    rig.answer = answer
    await rig.upkeep.promote()
    return rig.schedule.due_at - rig.clock.monotonic()


async def test_a_process_that_does_not_keep_the_time_looks_less_often() -> None:
    rig = Rig()
    await pause_after(rig, {"keeper": False})

    assert await pause_after(rig, {"keeper": False}) >= OTHERS_SECONDS * 0.75
    assert await pause_after(rig, {"keeper": True, "next_due_ms": 300}) == pytest.approx(0.3)
    assert await pause_after(rig, {"keeper": True}) <= 1.25


async def test_what_is_due_soon_is_news_for_the_timekeeper_alone_and_its_end_for_all() -> None:
    rig = Rig()
    await pause_after(rig, {"keeper": False})
    rig.upkeep.on_notification("100")
    assert rig.schedule.due_at - rig.clock.monotonic() > 0.5
    rig.upkeep.on_notification("")
    assert rig.schedule.due_at - rig.clock.monotonic() <= LATE_SECONDS
    await pause_after(rig, {"keeper": True})
    rig.upkeep.on_notification("100")
    rig.upkeep.on_notification("nonsense")

    assert rig.schedule.due_at - rig.clock.monotonic() == pytest.approx(0.1)


async def test_a_step_whose_time_this_process_arranged_is_promoted_on_time_by_it() -> None:
    rig = Rig()
    await pause_after(rig, {"keeper": False})
    rig.schedule.due_in(40)
    assert not rig.schedule.is_own_due
    rig.clock.seconds += 0.05
    assert rig.schedule.is_own_due

    await pause_after(rig, {"keeper": False, "passed_over": True})
    rig.clock.seconds += 0.05

    assert rig.schedule.is_own_due, "its task was locked: it is due again soon"
