"""How a worker asks for work: what it takes, what it tells of itself, and how it goes on after an error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from tasker.engine.answers import BacklogAnswer, ClaimAnswer
from tasker.engine.calls import Engine
from tasker.engine.exchange import AdvanceResult, ClaimRow, TaskInputs
from tasker.engine.plans import PlanStore
from tasker.engine.polling import QueuePoll, QueuePoller
from tasker.errors import DatabaseUnavailable
from tasker.execution import claiming
from tasker.execution.claiming import Claimer
from tasker.execution.report_buffer import ReportBuffer
from tasker.execution.slots import Slots
from tasker.execution.worker import Worker
from tasker.messaging.service import MessagingService
from tasker_memory.backend import MemoryBackend
from tests.support.worker_settings import worker_settings
from tests.unit.execution.bench import PATIENCE, FakeClock

NOTHING: Any = None
ROW = {"step": "s", "task": "t", "name": "s", "template": 1, "ordinal": 0, "token": 1, "attempt": 1}


class Announced:
    """A process that waits for announcements."""

    def longest_pause(self) -> float | None:
        return None

    @contextmanager
    def poll(self, *, polled: bool) -> Iterator[QueuePoll]:
        yield QueuePoll()


class Chance:
    """A die that has been thrown."""

    def __init__(self, value: float) -> None:
        self.value = value

    def random(self) -> float:
        return self.value


class Registry:
    """A database that knows which workers sleep, and answers claims in turn; without an answer there is no work."""

    def __init__(self) -> None:
        self.answers: list[dict[str, Any] | Exception] = []
        self.asleep: set[str] = set()
        self.marks: list[str] = []
        self.marked = asyncio.Event()
        self.slots: list[int] = []

    async def call(self, function: str, args: Any) -> dict[str, Any]:
        args = json.loads(args) if isinstance(args, str) else args
        if "action" in args:
            self.marks.append(args["action"])
            (self.asleep.add if args["action"] == "sleep" else self.asleep.discard)(args["worker"])
            self.marked.set()
            return {}
        self.slots.append(args["slots"])
        answer = self.answers.pop(0) if self.answers else {}
        if isinstance(answer, Exception):
            raise answer
        return answer


class Bench:
    """A claimer with its worker, on messages in memory (the claims of which end at once) or in the database."""

    def __init__(
        self, *, joined: bool, chance: float = 0.5, drowse_ms: int = 0, serves: Sequence[str] = ("space",)
    ) -> None:
        self.database, self.lost = Registry(), 0
        self.backend = MemoryBackend(FakeClock())
        self.messaging = MessagingService(self.backend)
        engine = Engine(self.database, self.messaging)  # type: ignore[arg-type]
        if joined:
            engine._joined = SimpleNamespace(claim="tasker_pgmq.claim_v1", call="tasker_pgmq.call_v1")  # type: ignore[assignment]
        settings = worker_settings(concurrency=8, drowse_ms=drowse_ms)
        slots = Slots(settings.dispatch.max_concurrent_handlers)
        self.worker = Worker(
            "worker one",
            slots,
            NOTHING,
            engine=engine,
            plans=PlanStore(NOTHING),
            runner=NOTHING,
            settings=settings,
            events=NOTHING,
            reports=ReportBuffer(None, 1),
        )
        self.worker.accept = self._accept  # type: ignore[method-assign]
        self.accepted = 0
        self.fills = False
        """True: what it accepts leaves no slot free."""
        luck = Chance(chance)
        self.namespaces = [*serves]
        self.claimer = Claimer(
            engine, self.worker, self.namespaces, QueuePoller(Announced(), luck), luck, NOTHING, on_lost=self._on_lost
        )

    async def _accept(self, answer: AdvanceResult) -> None:
        self.accepted += len(answer.claims)
        if self.fills:
            self.worker.slots.running = self.worker.slots.concurrency
        else:
            self.worker.slots.finish(len(answer.claims))

    def _on_lost(self) -> None:
        self.lost += 1

    async def asleep(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.worker.identity not in self.database.asleep:
                self.database.marked.clear()
                await self.database.marked.wait()


@contextmanager
def running(bench: Bench) -> Iterator[asyncio.Task[None]]:
    task = asyncio.create_task(bench.claimer.run())
    yield task
    bench.claimer.drain()
    task.cancel()


async def hint(bench: Bench) -> None:
    names = {"namespace": "space", "step": str(uuid4()), "task": str(uuid4())}
    await bench.messaging.send_hints([names])


async def test_messages_whose_steps_were_claimed_are_acknowledged() -> None:
    bench = Bench(joined=False)
    for _ in range(3):
        await hint(bench)
    bench.database.answers = [{"claims": [ROW, ROW, ROW], "popped": 3}]
    with running(bench):
        await bench.asleep()

    stats = await bench.messaging.queue_stats(await bench.messaging.ensure_namespace("space"))
    assert bench.accepted == 3
    assert (stats.depth, stats.in_flight) == (0, 0)


async def test_a_program_that_serves_nothing_yet_asks_for_nothing() -> None:
    bench = Bench(joined=True, serves=())
    with running(bench):
        for _ in range(3):
            bench.claimer.wake()
            await turns()
        assert (bench.database.slots, bench.database.marks) == ([], [])
        bench.namespaces.append("space")
        bench.claimer.wake()
        await bench.asleep()

    assert bench.database.slots == [8, 8]


async def test_no_more_slots_are_set_aside_than_there_are_messages() -> None:
    bench = Bench(joined=False)
    await hint(bench)
    with running(bench):
        await bench.asleep()

    assert max(bench.database.slots) == 1


async def test_a_worker_that_found_work_is_not_taken_for_asleep() -> None:
    bench = Bench(joined=True)
    with running(bench):
        await bench.asleep()
        bench.database.answers = [{"claims": [ROW], "popped": 1}]
        bench.fills = True
        bench.claimer.wake()
        async with asyncio.timeout(PATIENCE):
            while bench.database.asleep:
                await asyncio.sleep(0.001)

    assert bench.accepted == 1


async def test_a_worker_asks_again_soon_when_the_next_steps_belong_to_locked_tasks() -> None:
    bench = Bench(joined=True)
    answers = [*[BacklogAnswer(passed_over=True)] * 4, BacklogAnswer(claims=[ClaimRow.parse(ROW)], released=1)]

    async def release(namespace_ids: Sequence[int], slots: int) -> BacklogAnswer:
        return answers.pop(0)

    bench.claimer._release = release
    bench.database.answers = [{"release": [1]} for _ in answers]
    with running(bench):
        async with asyncio.timeout(PATIENCE):
            while not bench.accepted:
                await asyncio.sleep(0.001)


FOR_EVER_MS = 3_600_000


async def test_a_queue_that_never_empties_and_an_ordered_namespace_take_turns() -> None:
    """All slots of a claim are used by messages, and none is left for the steps that have no queue."""
    bench, took = Bench(joined=True), list[tuple[str, int]]()
    bench.fills = True

    async def claim(args: dict[str, Any]) -> ClaimAnswer:
        took.append(("queue", slots := args["slots"]))
        return ClaimAnswer(claims=[ClaimRow.parse(ROW)] * slots, popped=slots, release=[1])

    async def release(namespace_ids: Sequence[int], slots: int) -> BacklogAnswer:
        took.append(("backlog", slots))
        return BacklogAnswer(claims=[ClaimRow.parse(ROW)] * slots, released=slots)

    bench.claimer._engine.claim = claim  # type: ignore[assignment, method-assign]
    bench.claimer._release = release
    with running(bench):
        async with asyncio.timeout(PATIENCE):
            for _ in range(4):
                while bench.worker.slots.free:
                    await asyncio.sleep(0.001)
                await turns()
                bench.worker.slots.finish()

    assert [source for source, slots in took if slots] == ["queue", "backlog", "queue", "backlog"]


async def test_a_worker_that_was_woken_for_a_moment_stays_marked_so_that_the_next_task_wakes_it_at_once() -> None:
    bench = Bench(joined=True, drowse_ms=FOR_EVER_MS)
    with running(bench):
        await bench.asleep()
        for found in (1, 2, 3):
            bench.database.answers = [{"claims": [ROW], "popped": 1}]
            looks = len(bench.database.slots)
            bench.claimer.wake()
            async with asyncio.timeout(PATIENCE):
                while bench.accepted < found or len(bench.database.slots) < looks + 1:
                    await asyncio.sleep(0.001)

    assert bench.database.marks == ["sleep"], "and it costs no further write"


ALL: dict[str, Any] = {"claims": [ROW], "popped": 1}
SOME: dict[str, Any] = {"claims": [ROW] * 8, "popped": 8}
PUT_BACK: dict[str, Any] = {"claims": [ROW], "popped": 2}


@pytest.mark.parametrize(("answer", "looks"), [(ALL, 1), (SOME, 2), (PUT_BACK, 2)], ids=["all", "some", "put back"])
async def test_a_marked_worker_looks_again_only_where_something_may_be_left(answer: dict[str, Any], looks: int) -> None:
    """Whoever sends more wakes it: it was marked before the look that took all."""
    bench = Bench(joined=True, drowse_ms=FOR_EVER_MS)
    with running(bench):
        await bench.asleep()
        await turns()
        before = len(bench.database.slots)
        bench.database.answers = [answer]
        bench.claimer.wake()
        await turns()
        assert len(bench.database.slots) == before + looks
        bench.database.answers = [ALL]
        bench.claimer.wake()
        await turns()

    assert bench.accepted == len(answer["claims"]) + 1


async def test_a_worker_whose_mark_may_be_lost_looks_again_whatever_it_took() -> None:
    bench = Bench(joined=True, drowse_ms=FOR_EVER_MS)
    with running(bench):
        await bench.asleep()
        await turns()
        before = len(bench.database.slots)
        bench.database.answers = [ALL]
        bench.claimer.start_over()
        await turns()

    assert len(bench.database.slots) == before + 3, "what it took, nothing, and nothing again once it is marked"
    assert bench.database.marks == ["sleep", "sleep"]


async def turns() -> None:
    """Let everything that can go on do so: nothing here waits for anything but an announcement."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_worker_that_can_take_nothing_more_is_woken_no_more() -> None:
    bench = Bench(joined=True, drowse_ms=FOR_EVER_MS)
    with running(bench):
        await bench.asleep()
        bench.database.answers = [{"claims": [ROW], "popped": 1}]
        bench.fills = True
        bench.claimer.wake()
        async with asyncio.timeout(PATIENCE):
            while bench.database.asleep:
                await asyncio.sleep(0.001)


async def test_a_worker_that_heard_nothing_for_a_while_says_anew_that_it_sleeps() -> None:
    """A fail-over may have lost the mark."""
    bench = Bench(joined=True)
    with running(bench):
        await bench.asleep()
        bench.database.asleep.clear()
        bench.claimer.start_over()
        await bench.asleep()


async def test_a_new_incarnation_says_anew_that_it_sleeps() -> None:
    bench = Bench(joined=True)
    with running(bench) as task:
        await bench.asleep()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    bench.worker.identity = "worker two"
    bench.claimer._draining = False
    with running(bench):
        await bench.asleep()


@pytest.mark.parametrize("chance", [0.0, 0.25, 0.9])
async def test_after_an_error_processes_come_back_at_different_times_and_somebody_looks_for_lost_claims(
    monkeypatch: pytest.MonkeyPatch, chance: float
) -> None:
    bench, pauses = Bench(joined=True, chance=chance), list[float]()
    bench.database.answers = [DatabaseUnavailable("gone")]
    bench.worker.inputs.learn({"task": TaskInputs({}, "c")})
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(claiming.asyncio, "sleep", note)
    with running(bench):
        await bench.asleep()

    assert pauses == [0.2 * (0.5 + chance)]
    assert bench.lost == 1
    with pytest.raises(KeyError):
        bench.worker.inputs.require("task")  # the server that is there now may have forgotten what the old one said


async def test_steps_that_were_sent_again_are_announced_with_their_time() -> None:
    bench = Bench(joined=True)
    later: dict[str, float] = {}
    bench.claimer._on_delayed = later.update
    bench.database.answers = [{"popped": 1, "later": {"s": 500}}]
    with running(bench):
        await bench.asleep()
    assert later == {"s": 500}
