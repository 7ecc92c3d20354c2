"""Claims that a worker got and cannot start: they take no slot from others, and those who can run them get them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tasker.engine.exchange import AdvanceResult, ClaimRow, Inputs, Result, TaskInputs
from tasker.errors import DatabaseUnavailable, PlanUnreadable
from tasker.execution.attempt.attempt import Attempt, AttemptEnd
from tasker.execution.completer import CompletionBuffer
from tasker.execution.in_flight import ReleasedClaim
from tasker.execution.report_buffer import ReportBuffer
from tasker.execution.settings import WorkerSettings
from tasker.execution.slots import Slots
from tasker.execution.worker import MOST_TOGETHER, Worker
from tasker.template.plan import Plan
from tests.support.random_plans import Spec, build_plan
from tests.unit.execution.bench import PATIENCE, failure_of

NOTHING: Any = None


class Plans:
    """A store that answers every request with the same plan or error."""

    def __init__(self, found: Plan | Exception) -> None:
        self.found = found

    async def get(self, template: int) -> Plan:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


class Handlers:
    """Runs the attempts, and notes them: none ends before it is stopped."""

    crowded = False

    def __init__(self) -> None:
        self.begun: list[Attempt] = []

    async def run(self, attempt: Attempt) -> AttemptEnd:
        self.begun.append(attempt)
        await asyncio.Event().wait()
        raise AssertionError


class Database:
    """Answers what handlers read; `before` happens first, the first time."""

    def __init__(self, before: Callable[[], None]) -> None:
        self.before: list[Callable[[], None]] = [before]
        self.asked = 0

    async def read(self, function: str, args: Any) -> dict[str, Any]:
        self.asked += 1
        while self.before:
            self.before.pop()()
        return {"tasks": {"task 0": {"context": {}, "correlation": "c", "priority": 0}}}


class Unknowing:
    """Knows nothing of whose a task is."""

    @property
    def connection(self) -> Unknowing:
        return self

    async def execute(self, statement: str, params: Any) -> list[Any]:
        return []


def worker(
    found: Plan | Exception,
    given_back: list[ReleasedClaim],
    runner: Any = NOTHING,
    engine: Any = NOTHING,
    slots: int = 4,
) -> Worker:
    room = Slots(slots)
    buffer = CompletionBuffer(room)
    buffer.add_release = given_back.append  # type: ignore[method-assign]
    return Worker(
        "worker",
        room,
        buffer,
        engine=engine,
        plans=Plans(found),  # type: ignore[arg-type]
        runner=runner,
        settings=WorkerSettings(),
        events=NOTHING,
        reports=ReportBuffer(None, 1),
    )


def claims(count: int) -> AdvanceResult:
    rows = [ClaimRow(f"step {n}", f"task {n}", "s", template=7, ordinal=3, token=1, attempt=1) for n in range(count)]
    return AdvanceResult(rows, inputs={})


async def test_slots_of_claims_that_could_not_be_started_are_free_again() -> None:
    idle = worker(DatabaseUnavailable("gone"), [])

    async def answer(_: int) -> AdvanceResult:
        return claims(3)

    with pytest.raises(DatabaseUnavailable):
        await idle.offer(answer)
    assert idle.slots.free == 4


async def test_steps_of_a_newer_version_are_given_back_and_not_taken_again() -> None:
    given_back: list[ReleasedClaim] = []
    old = worker(PlanUnreadable("made by a newer version"), given_back, engine=Unknowing())

    async def answer(_: int) -> AdvanceResult:
        return claims(2)

    await old.offer(answer)
    assert [each.note["reason"] for each in given_back] == ["made by a newer version"] * 2
    assert all("unreadable" in each.note for each in given_back), "so that they are set aside, and never fail for that"
    assert old.caller(4).unserved == ["7:3"]
    assert old.slots.free == 4


def root(token: int = 1, inputs: Inputs | None = None) -> AdvanceResult:
    """A claim of the only step of a plan."""
    return AdvanceResult(
        [ClaimRow("step 0", "task 0", "a", template=7, ordinal=0, token=token, attempt=1)], inputs=inputs
    )


@pytest.mark.parametrize(("token", "runs"), [(1, 1), (2, 2)])
async def test_a_claim_that_a_restored_database_answers_again_runs_once(token: int, runs: int) -> None:
    """Its handler runs on, and what it comes to is the result; another token is another attempt."""
    handlers = Handlers()
    busy = worker(build_plan(Spec("a")), [], handlers)
    known = {"task 0": TaskInputs({}, "c")}

    for given in (1, token):

        async def answer(_: int, given: int = given) -> AdvanceResult:
            return root(given, known)

        await busy.offer(answer)
    await asyncio.sleep(0)

    assert len(handlers.begun) == runs
    assert busy.slots.free == 4 - runs
    assert busy.claim_tokens() == [("step 0", token)]


async def test_what_was_forgotten_while_inputs_were_on_their_way_is_asked_for_again() -> None:
    handlers = Handlers()
    database = Database(lambda: forgetful.inputs.clear())
    forgetful = worker(build_plan(Spec("a")), [], handlers, database)

    await forgetful.accept(root())
    await asyncio.sleep(0)

    assert (len(handlers.begun), database.asked) == (1, 2)


def many(count: int, inputs: Inputs | None) -> AdvanceResult:
    rows = [ClaimRow(f"step {n}", "task 0", "a", template=7, ordinal=0, token=1, attempt=1) for n in range(count)]
    return AdvanceResult(rows, inputs=inputs)


async def test_of_many_claims_the_first_run_before_the_others_are_started() -> None:
    handlers, most = Handlers(), MOST_TOGETHER
    begun: list[int] = []
    busy = worker(build_plan(Spec("a")), [], handlers, slots=3 * most)

    async def look() -> None:
        while len(handlers.begun) < 2 * most + 1:
            begun.append(len(handlers.begun))
            await asyncio.sleep(0)

    async def answer(_: int) -> AdvanceResult:
        return many(2 * most + 1, {"task 0": TaskInputs({}, "c")})

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(busy.offer(answer), look())
    assert sorted({0, *begun}) == [0, most, 2 * most]
    assert busy.slots.free == most - 1


async def test_what_was_forgotten_between_two_groups_of_claims_is_asked_for_and_no_slot_is_lost() -> None:
    handlers, most = Handlers(), MOST_TOGETHER
    database = Database(lambda: None)
    forgetful = worker(build_plan(Spec("a")), [], handlers, database, slots=2 * most)

    async def answer(_: int) -> AdvanceResult:
        asyncio.get_running_loop().call_soon(forgetful.inputs.clear)
        return many(most + 2, {"task 0": TaskInputs({}, "c")})

    await forgetful.offer(answer)
    async with asyncio.timeout(PATIENCE):
        while len(handlers.begun) < most + 2:
            await asyncio.sleep(0)
    assert database.asked == 1
    assert forgetful.slots.free == most - 2


async def test_slots_of_claims_behind_one_that_cannot_be_started_are_free_again() -> None:
    handlers, most = Handlers(), MOST_TOGETHER
    broken = worker(build_plan(Spec("a")), [], handlers, slots=2 * most)

    async def answer(_: int) -> AdvanceResult:
        answered = many(most + 2, {"task 0": TaskInputs({}, "c")})
        return replace(answered, claims=[*answered.claims, answered.claims[0]._replace(step="odd", ordinal=5)])

    with pytest.raises(IndexError):
        await broken.offer(answer)
    assert broken.slots.free == most - 2


@pytest.mark.parametrize("error", [asyncio.CancelledError(), GeneratorExit(), RuntimeError("a defect")])
async def test_whatever_leaves_an_attempt_its_slot_is_free_again_and_its_claim_has_a_result(
    error: BaseException,
) -> None:
    class Leaves(Handlers):
        async def run(self, attempt: Attempt) -> AttemptEnd:
            raise error

    busy = worker(build_plan(Spec("a")), [], Leaves())
    results: list[Result] = []
    busy._completed.add = results.append  # type: ignore[method-assign]

    await busy.accept(root(inputs={"task 0": TaskInputs({}, "c")}))
    busy.slots.settle(busy.slots.reserve(1), 1)
    task = busy.claims._in_hand["step 0"].task
    assert task is not None
    await asyncio.wait([task])

    assert busy.slots.free == 4
    assert [failure_of(each).error_type for each in results] == ["worker_error"]
    assert task.cancelled() == isinstance(error, asyncio.CancelledError)
    assert task.cancelled() or task.exception() is (None if isinstance(error, Exception) else error)
