"""Rule 14: one process sweeps in each interval, whatever their number; when it dies, another one does."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from tasker.clock import Clock
from tasker.db.connection import Connection
from tasker.engine.calls import Engine
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tasker.orchestration.pending_work import KEPT_TURNS, ExclusiveTurns
from tests.support.engine_fixture import Lab

SECONDS = 5.0


class Time(Clock):
    """The time of one test, for its processes and, through `tasker.now`, for their sessions."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


class Process:
    """One that asks when it said that it would, and notes when it had the turn."""

    def __init__(self, engine: Engine, time: Time, seed: int) -> None:
        self.engine, self.time = engine, time
        self.turns = ExclusiveTurns(engine, "sweep", time, random.Random(seed), SECONDS)
        self.next, self.asked = 0.0, 0
        self.had: list[float] = []

    async def ask(self) -> None:
        self.time.seconds = self.next
        await self.at_this_time()
        mine, pause = await self.turns.take()
        self.asked += 1
        self.had += [self.time.seconds] if mine else []
        self.next += pause

    async def at_this_time(self) -> None:
        await self.engine.connection.execute(
            "select set_config('tasker.now', ('2030-01-01'::timestamptz + make_interval(secs => %s))::text, false)",
            (self.time.seconds,),
        )


@pytest.fixture
async def processes(lab: Lab) -> AsyncIterator[list[Process]]:
    time, messaging = Time(), MessagingService(load_backend("pgmq", {}))
    connections = [Connection(lab.url) for _ in range(3)]
    yield [Process(Engine(connection, messaging), time, seed) for seed, connection in enumerate(connections)]
    for connection in connections:
        await connection.close()


async def run(processes: list[Process], until: float) -> None:
    """Each asks at its time."""
    while (first := min(processes, key=lambda process: process.next)).next < until:
        await first.ask()


async def test_of_several_processes_one_sweeps_in_each_interval(processes: list[Process]) -> None:
    await run(processes, 40 * SECONDS)

    had = sorted(moment for process in processes for moment in process.had)
    gaps = [later - earlier for earlier, later in pairwise(had)]
    assert min(gaps) >= 0.7 * SECONDS
    assert max(gaps) <= 1.5 * SECONDS
    assert sum(process.asked for process in processes) < 40 * 3 / 0.7
    assert all(process.had for process in processes), "it goes round, since one may repair what another cannot"


async def test_when_the_sweeper_dies_another_one_sweeps_in_the_next_interval(processes: list[Process]) -> None:
    await run(processes, (KEPT_TURNS - 3) * SECONDS)
    (dead,) = [process for process in processes if process.had]
    others = [process for process in processes if process is not dead]

    await run(others, dead.had[-1] + 1.5 * SECONDS)

    assert len([moment for process in others for moment in process.had]) == 1


async def test_a_long_sweep_is_not_joined_by_others(processes: list[Process]) -> None:
    one, two, _ = processes
    await one.ask()
    for moment in range(1, 20):
        one.time.seconds = float(moment)
        await one.at_this_time()
        await one.turns.extend()
        await run([two], moment + 0.999)

    assert not two.had


async def test_two_that_ask_at_the_same_moment_do_not_both_sweep(lab: Lab) -> None:
    lab, args = lab, {"kind": "sweep", "after_ms": 1000}
    assert lab.one.core("take_turn", args)["mine"]
    lab.one.set_time(3600)
    lab.two.set_time(3600)

    with lab.transaction(lab.one):
        first = lab.one.core("take_turn", args)["mine"]
        second = lab.two.core("take_turn", args)["mine"]

    assert (first, second) == (True, False)


async def test_a_clock_that_was_set_back_stops_no_sweep(lab: Lab) -> None:
    lab, args = lab, {"kind": "sweep", "after_ms": 1000}
    lab.one.set_time(3600)
    assert lab.one.core("take_turn", args)["mine"]
    lab.one.set_time(0)

    assert lab.one.core("take_turn", args)["mine"]
