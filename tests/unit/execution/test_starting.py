"""Claims that a worker got and cannot start: they take no slot from others, and those who can run them get them."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.contracts.plan import Plan
from tasker.errors import DatabaseUnavailable, PlanUnreadable
from tasker.execution.claims_in_hand import GivenBack
from tasker.execution.completion_buffer import CompletionBuffer
from tasker.execution.settings import WorkerSettings
from tasker.execution.slots import Slots
from tasker.execution.worker import Worker
from tasker.lifecycle.pressure import BufferLimits
from tasker.services.engine.claims import ClaimRow, Inputs
from tasker.services.engine.exchange import AdvanceResult

NOTHING: Any = None


class Plans:
    """A store that answers every request with the same error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def get(self, template: int) -> Plan:
        raise self.error


def worker(error: Exception, given_back: list[GivenBack]) -> Worker:
    slots = Slots(4)
    buffer = CompletionBuffer(slots, BufferLimits())
    buffer.give_back = given_back.append  # type: ignore[method-assign]
    return Worker(
        "worker",
        slots,
        buffer,
        engine=NOTHING,
        plans=Plans(error),  # type: ignore[arg-type]
        runner=NOTHING,
        settings=WorkerSettings(),
    )


def claims(count: int) -> AdvanceResult:
    rows = [ClaimRow(f"step {n}", f"task {n}", "s", template=7, ordinal=3, token=1, attempt=1) for n in range(count)]
    return AdvanceResult(rows, inputs=Inputs({}, {}))


async def test_slots_of_claims_that_could_not_be_started_are_free_again() -> None:
    idle = worker(DatabaseUnavailable("gone"), [])

    async def answer(_: int) -> AdvanceResult:
        return claims(3)

    with pytest.raises(DatabaseUnavailable):
        await idle.offer(answer)
    assert idle.slots.free == 4


async def test_steps_of_a_newer_version_are_given_back_and_not_taken_again() -> None:
    given_back: list[GivenBack] = []
    old = worker(PlanUnreadable("made by a newer version"), given_back)

    async def answer(_: int) -> AdvanceResult:
        return claims(2)

    await old.offer(answer)
    assert [each.note["reason"] for each in given_back] == ["made by a newer version"] * 2
    assert old.caller(4).unserved == ["7:3"]
    assert old.slots.free == 4
