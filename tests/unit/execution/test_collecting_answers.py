"""What a collector does with the answers to its writes: nothing is lost, let go too early, or promised twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import pytest

from tasker.clock import SystemClock
from tasker.engine.exchange import AdvanceResult, ClaimRow, CompletingWorker, Result, TaskInputs
from tasker.engine.plans import PlanStore
from tasker.errors import DatabaseUnavailable, LockTimeout
from tasker.execution.completer import Completer, CompletionBuffer
from tasker.execution.in_flight import InFlightClaim, ReleasedClaim
from tasker.execution.report_buffer import ReportBuffer
from tasker.execution.settings import WorkerSettings
from tasker.execution.slots import Slots
from tasker.execution.worker import Worker
from tasker.handlers.claims import Claim, Success, Verdict
from tasker.json_values import JsonText
from tasker.resilience.breaker import BreakerState
from tasker.resilience.breakers import BreakerPolicies, Breakers
from tasker.template.plan import BreakerPolicy
from tests.unit.execution.bench import PATIENCE

NOTHING: Any = None
TASK = "task"


def claim(step: str, token: int = 1) -> Claim:
    return Claim(step, TASK, step, 1, 0, "space", token, 1, 3, "correlation")


class Rig:
    """A collector whose writes are answered as `answers` says, by the steps of the write; else they are accepted."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, ...], list[AdvanceResult | BaseException]] = {}
        self.writes: list[tuple[tuple[str, ...], bool, int]] = []
        """Steps, whether the write waited for locks, and the slots that it offered."""
        self.releases: list[BaseException | None] = []
        self.released: list[str] = []
        self.seen: list[AdvanceResult] = []
        self.lost = 0
        policy = BreakerPolicy(failure_threshold=2, timeout_seconds=0.05, success_threshold=1)
        breakers = Breakers(SystemClock(), BreakerPolicies(completion=policy, settle_seconds=0))
        self.breaker = breakers.completion.guard
        self.then: list[str] = []
        slots = Slots(10)
        self.buffer = CompletionBuffer(slots)
        self.worker = Worker(
            "worker",
            slots,
            self.buffer,
            engine=NOTHING,
            plans=PlanStore(NOTHING),
            runner=NOTHING,
            settings=WorkerSettings(),
            events=NOTHING,
            reports=ReportBuffer(None, 1),
        )
        self.collector = Completer(
            self.buffer,
            self.worker,
            self,
            self._release,
            breakers.completion,
            on_advanced=self._on_advanced,
            on_lost=self._on_lost,
            bus=NOTHING,
        )
        breakers.completion.guard.listeners.append(self.collector.apply_breaker)
        self.worker.accept = self._accept  # type: ignore[method-assign]

    async def process(self, results: Sequence[Result], caller: CompletingWorker, *, wait: bool = True) -> AdvanceResult:
        steps = tuple(sorted(result.claim.step_uuid for result in results))
        self.writes.append((steps, wait, caller.slots))
        answer = (self.answers.get(steps) or [AdvanceResult()]).pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    @property
    def stored(self) -> list[str]:
        return [step for steps, _, _ in self.writes for step in steps]

    def _on_advanced(self, advanced: AdvanceResult) -> None:
        self.seen.append(advanced)
        self.end(*self.then)
        self.then = []

    def _on_lost(self) -> None:
        self.lost += 1

    async def _release(self, given_back: list[ReleasedClaim]) -> None:
        if self.releases and (error := self.releases.pop(0)):
            raise error
        self.released += [each.claim.step_uuid for each in given_back]

    async def _accept(self, answer: AdvanceResult) -> None:
        self.worker.slots.finish(len(answer.claims))  # what was handed over has run and ended

    def result(self, step: str) -> Result:
        return Result(claim(step), NOTHING, 0, Success(JsonText("null")))

    def hold(self, step: str) -> None:
        self.worker.claims.take(InFlightClaim(claim(step), "handler"))

    def end(self, *steps: str) -> None:
        for step in steps:
            self.buffer.add(self.result(step))

    def give_back(self, step: str) -> None:
        self.hold(step)
        self.buffer.add_release(ReleasedClaim(claim(step), {"reason": "the worker stops"}))

    async def done(self) -> None:
        await asyncio.wait_for(self.buffer.flushed(), PATIENCE)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    made = Rig()
    running = asyncio.create_task(made.collector.run())
    yield made
    running.cancel()
    with suppress(asyncio.CancelledError, RuntimeError):
        await running


async def put_off(rig: Rig, *steps: str, then: Sequence[str] = ()) -> None:
    """Results of tasks that others hold, which are to be brought again; `then` these end before that happens."""
    rig.answers[steps] = [AdvanceResult(verdicts=dict.fromkeys(steps, Verdict.BUSY))]
    rig.then = list(then)
    rig.end(*steps)


async def test_what_was_put_off_waits_for_its_task_and_what_is_new_does_not(rig: Rig) -> None:
    await put_off(rig, "busy", then=["new"])
    await rig.done()

    assert [(steps, wait) for steps, wait, _ in rig.writes] == [
        (("busy",), False),
        (("busy",), True),
        (("new",), False),
    ]


async def test_what_was_put_off_is_brought_again_when_the_next_write_fails(rig: Rig) -> None:
    await put_off(rig, "busy", then=["new"])
    rig.answers["busy",].append(DatabaseUnavailable("gone"))
    await rig.done()

    assert rig.stored == ["busy", "busy", "busy", "new"]
    assert rig.lost == 1, "whoever reconciles is told that an answer was lost"


async def test_a_claim_is_kept_until_its_result_is_stored(rig: Rig) -> None:
    held = []
    rig.hold("busy")
    rig.collector._on_advanced = lambda _: held.append(rig.worker.claim_tokens())
    await put_off(rig, "busy")
    await rig.done()

    assert held == [[("busy", 1)], []]


async def test_slots_that_the_first_write_has_filled_are_not_offered_again(rig: Rig) -> None:
    await put_off(rig, "busy", then=["new"])
    rig.answers["busy",].append(AdvanceResult([ClaimRow("s", "t", "s", template=1, ordinal=0, token=1, attempt=1)] * 3))
    await rig.done()

    assert [slots for _, _, slots in rig.writes] == [10, 10, 7]
    assert rig.worker.slots.free == 10


@pytest.mark.parametrize(("first", "second"), [(5000, 100), (100, 5000), (None, 100), (100, None)])
async def test_the_soonest_retry_of_both_writes_is_told(rig: Rig, first: int | None, second: int | None) -> None:
    await put_off(rig, "busy", then=["new"])
    rig.answers["busy",].append(AdvanceResult(retry_in_ms=first))
    rig.answers["new",] = [AdvanceResult(retry_in_ms=second)]
    await rig.done()

    assert rig.seen[-1].retry_in_ms == 100


async def test_inputs_of_tasks_that_have_ended_are_forgotten(rig: Rig) -> None:
    rig.worker.inputs.learn({task: TaskInputs({}, "c") for task in (TASK, "open")})
    rig.answers["last",] = [AdvanceResult(finished={TASK: "complete"})]
    rig.end("last")
    await rig.done()

    assert rig.worker.inputs.require("open")
    with pytest.raises(KeyError):
        rig.worker.inputs.require(TASK)


async def test_after_a_lost_answer_results_are_asked_for_anew_since_another_server_may_have_forgotten_them(
    rig: Rig,
) -> None:
    rig.worker.inputs.learn({TASK: TaskInputs({}, "c", results={"above": (0, "what the old server had")})})
    rig.answers["step",] = [DatabaseUnavailable("gone")]
    rig.end("step")
    await rig.done()

    with pytest.raises(KeyError):
        rig.worker.inputs.require(TASK)


@pytest.mark.parametrize("error", [LockTimeout("locked"), DatabaseUnavailable("gone")], ids=lambda e: type(e).__name__)
async def test_claims_that_could_not_be_released_are_released_the_next_time(rig: Rig, error: Exception) -> None:
    rig.releases = [error]
    rig.give_back("step")
    await rig.done()

    assert rig.released == ["step"]
    assert rig.worker.released_count == 1
    assert rig.worker.claim_tokens() == []


async def test_a_locked_task_whose_claim_is_released_does_not_keep_results_waiting(rig: Rig) -> None:
    rig.releases = [LockTimeout("locked")]
    rig.give_back("step")
    rig.end("result")
    await rig.done()

    assert rig.stored == ["result"]
    assert rig.released == ["step"]


async def test_a_trial_that_crashes_says_nothing_and_the_next_one_may_be() -> None:
    rig = Rig()
    rig.breaker.force_open()
    while rig.breaker.state is not BreakerState.HALF_OPEN:
        await asyncio.sleep(0.001)
    rig.answers["one",] = [RuntimeError("a defect")]
    rig.end("one")
    with pytest.raises(RuntimeError, match="a defect"):
        await rig.collector.run()
    again = asyncio.create_task(rig.collector.run())
    await rig.done()
    again.cancel()

    assert rig.stored == ["one", "one"]
    assert rig.breaker.state is BreakerState.CLOSED


async def test_what_fails_behind_a_write_keeps_no_slot_of_the_steps_that_it_handed_over() -> None:
    """A thread that cannot be started for a publisher, say: the collector crashes, and is begun again."""
    rig = Rig()
    rig.answers[("a",)] = [AdvanceResult([ClaimRow("b", TASK, "b", template=1, ordinal=0, token=1, attempt=1)])]

    def fails(_: AdvanceResult) -> None:
        raise RuntimeError("can't start new thread")

    rig.collector._on_advanced = fails
    rig.end("a")

    with pytest.raises(RuntimeError, match="new thread"):
        await asyncio.wait_for(rig.collector.run(), PATIENCE)

    assert rig.worker.slots.idle
