"""A sweep over many open tasks takes its time: nobody waits for its end to be woken or promoted (rules 7 and 13)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tasker.clock import SystemClock
from tasker.engine.calls import Answer, Engine
from tasker.engine.plans import PlanStore
from tasker.orchestration.pending_work import ExclusiveTurns, PendingWork
from tasker.orchestration.results import ResultProcessor
from tasker.orchestration.sweep import Sweeper
from tasker.orchestration.upkeep import NoStepExecutor, Upkeep
from tasker.resilience.breakers import Breakers
from tests.integration.engine.protocol.conftest import Orchestra, at_once
from tests.integration.engine.protocol.messages.test_wakeups import heard, listener, mark


class Watched(Engine):
    """Notes each look for retries and for what to repair, with the workers that were woken before it."""

    def __init__(self, orchestra: Orchestra) -> None:
        super().__init__(orchestra.engine.connection, orchestra.engine.messaging)
        self.ears = listener(orchestra.lab)
        self.noted: list[tuple[str, list[str]]] = []
        self.meanwhile: Callable[[], object] = lambda: None
        """Happens during the first look for what to repair."""

    async def call(self, function: str, args: Any, *, ends_logged: bool = False) -> Answer:
        self.note(function)
        return await super().call(function, args, ends_logged=ends_logged)

    async def read(self, function: str, args: Any) -> Answer:
        self.note(function)
        return await super().read(function, args)

    def note(self, function: str) -> None:
        if function not in ("due", "sweep"):
            return
        self.noted.append((function, heard(self.ears)))
        if len(self.noted) == 1:
            self.meanwhile()


class Standing(SystemClock):
    """Time does not pass: only what is asked for becomes due."""

    def monotonic(self) -> float:
        return 100.0


def upkeep(orchestra: Orchestra, engine: Engine, schedule: PendingWork) -> Upkeep:
    clock, chance = Standing(), random.Random(1)
    sweeper = Sweeper(
        engine,
        ResultProcessor(engine, chance),
        PlanStore(engine.connection),
        chance,
        at_once(slice=1),
    )
    breaker = Breakers(clock).task_readiness
    return Upkeep(
        engine,
        sweeper,
        ExclusiveTurns(engine, "sweep", clock, chance, 5.0),
        NoStepExecutor(orchestra.caller()),
        schedule,
        clock,
        chance,
        breaker=breaker,
        on_advanced=lambda _: None,
    )


async def test_between_two_slices_sleepers_are_woken_and_then_what_is_due_is_promoted(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.submit(lab.chain(1), {}, {}, {})
    lab.two.start_worker()
    mark(lab.two, "sleep")
    engine = Watched(orchestra)
    schedule = PendingWork(Standing())
    under_test = upkeep(orchestra, engine, schedule)
    await under_test.promote()  # as at the start, when everything may be due
    engine.noted.clear()

    def meanwhile() -> None:
        schedule.wake({lab.namespace})
        schedule.due_in(0)

    engine.meanwhile = meanwhile
    await under_test.sweep()

    assert engine.noted[:3] == [("sweep", []), ("due", [f"@{lab.namespace}"]), ("sweep", [])]
    assert {name for name, _ in engine.noted[3:]} == {"sweep"}, "nothing else was due"
