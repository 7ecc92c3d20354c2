"""Messages that point to parked results: what an orchestrator does with good and with bad ones."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest

from tasker.db.channel import DatabaseChannel
from tasker.db.connection import Connection
from tasker.engine.calls import Engine
from tasker.engine.exchange import AdvanceResult, CompletingWorker
from tasker.engine.fleet_rules import FleetRules
from tasker.engine.plans import PlanStore
from tasker.errors import BackendUnavailable, DatabaseError, DatabaseUnavailable, StatementTimeout
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tasker.orchestration import parked_steps as ending
from tasker.orchestration import poison_guard as receptions
from tasker.orchestration.parked_results import ParkedResultConsumer
from tasker.orchestration.results import ResultProcessor
from tasker.template.plan import Plan
from tests.support.engine_fixture import Lab, ok
from tests.support.random_plans import DECISION, Spec

RULES = FleetRules(hidden_seconds=36_000)


@dataclass(frozen=True)
class Tray:
    """The queue of parked results, and who ends them."""

    lab: Lab
    messaging: MessagingService
    advanced: list[AdvanceResult] = field(default_factory=list)

    async def send(self, *payloads: Any) -> None:
        for payload in payloads:
            raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
            await self.messaging.send_message(self.messaging.names.step_results, raw)

    async def receive(self, url: str | None = None) -> int:
        connection = Connection(url or self.lab.url)
        engine = Engine(connection, self.messaging, RULES)
        plans, told = PlanStore(connection), self.advanced.append
        results = ParkedResultConsumer(engine, ResultProcessor(engine, random.Random(1)), plans, told)
        try:
            return await results.receive(CompletingWorker(self.lab.one.worker), 100)
        finally:
            await connection.close()

    async def waiting(self) -> int:
        return (await self.messaging.queue_stats(self.messaging.names.step_results)).depth

    def parked(self) -> tuple[str, dict[str, Any]]:
        """A task whose only step is parked, and the message that points to it."""
        plan = self.lab.chain(1)
        task = self.lab.submit_one(plan)
        (claim,) = self.lab.one.claim()
        (message,) = self.lab.one.core("park", {"worker": self.lab.one.worker, "items": [ok(claim)]})["parked"]
        return task, message


@pytest.fixture
async def tray(lab: Lab) -> AsyncIterator[Tray]:
    messaging = MessagingService(load_backend("pgmq", {"channel": DatabaseChannel(lab.url)}))
    await messaging.open()
    await messaging.ensure_orchestration_queues()
    yield Tray(lab, messaging)
    await messaging.close()


@pytest.mark.parametrize(
    "wrong",
    [
        *(b"\xff no json", b"[" * 100_000, [1], 7, {"token": 1}, {"step": 7}, {"step": None}, {"step": "abc"}),
        *({"steps": []}, {"steps": None}, {"steps": "abc"}, {"steps": [str(UUID(int=7)), "abc"]}),
    ],
)
async def test_a_message_that_points_to_no_step_is_kept_with_the_reason_and_holds_nobody_up(
    tray: Tray, wrong: Any
) -> None:
    task, message = tray.parked()
    await tray.send(wrong, message)

    assert await tray.receive() == 2

    assert tray.lab.task(task).state == "complete"
    (kept,) = tray.lab.observer.rows("select queue_name, reason from tasker.poison_messages")
    assert kept.queue_name == tray.messaging.names.step_results
    assert "points to no parked step" in kept.reason
    assert await tray.waiting() == 0


async def test_of_a_message_to_several_steps_the_unknown_one_is_kept_and_the_others_are_ended(tray: Tray) -> None:
    pointed = [tray.parked(), tray.parked()]
    stranger = str(UUID(int=7))
    await tray.messaging.send_step_results([pointed[0][1], {"step": stranger}, pointed[1][1]])

    assert await tray.receive() == 3

    assert [tray.lab.task(task).state for task, _ in pointed] == ["complete", "complete"]
    (kept,) = tray.lab.observer.rows("select message->>'raw' as raw, reason from tasker.poison_messages")
    assert (json.loads(kept.raw), kept.reason) == ({"step": stranger}, "unknown step")
    assert await tray.waiting() == 0


async def test_pointers_wait_while_the_database_is_away(tray: Tray) -> None:
    task, message = tray.parked()
    await tray.send(message)

    with pytest.raises(DatabaseError):
        await tray.receive("postgresql://127.0.0.1:1/none")

    assert await tray.receive() == 1, "it was given back at once"
    assert tray.lab.task(task).state == "complete"


class _Killed(BaseException):
    """The process ends here."""


KILLS = "kills"


def parked_decisions(tray: Tray, *names: str) -> list[tuple[str, dict[str, Any]]]:
    """Tasks whose only step, a decision, is parked, with the messages; `names` are those of their templates."""
    found = []
    for name in names:
        task = tray.lab.submit_one(tray.lab.plan(Spec("d", DECISION), Spec("x", depends_on=("d",)), name=name))
        (claim,) = tray.lab.one.claim()
        result = {"decision_point_outcome": {"type": "no_branches"}}
        item = ok(claim, result)
        (message,) = tray.lab.one.core("park", {"worker": tray.lab.one.worker, "items": [item]})["parked"]
        found.append((task, message))
    return found


def breaks(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Planning what a step of the template KILLS decided raises this."""
    plan_growth = ending.plan_growth

    async def planned(engine: Engine, plan: Plan, *rest: Any) -> Any:
        if plan.name == KILLS:
            raise error
        return await plan_growth(engine, plan, *rest)

    monkeypatch.setattr(ending, "plan_growth", planned)


@pytest.mark.parametrize(("together", "receptions"), [(1, 5), (7, 6)])
async def test_a_result_that_ends_every_process_fails_its_step_in_the_end_and_those_beside_it_are_ended(
    tray: Tray, monkeypatch: pytest.MonkeyPatch, together: int, receptions: int
) -> None:
    """One message may point to all of them: it is taken once, and then each has its own."""
    pointed = parked_decisions(tray, *("good",) * 3, KILLS, *("good",) * 3)
    await tray.messaging.send_step_results([message for _, message in pointed], together)
    breaks(monkeypatch, _Killed())
    deaths = 0
    for _ in range(30):
        try:
            while await tray.receive():
                pass
        except _Killed:
            deaths += 1
            tray.lab.observer.execute("update pgmq.q_orchestration_step_results set vt = clock_timestamp()")

    assert deaths == receptions
    states = [tray.lab.task(task).state for task, _ in pointed]
    assert states == [*("complete",) * 3, "error", *("complete",) * 3]
    (error,) = tray.lab.observer.rows(
        "select error->>'error_type' as type, error->>'message' as said from tasker.step_failures"
    )
    assert (error.type, "taken 5 times" in error.said) == ("result_unusable", True)
    assert await tray.waiting() == 0
    tray.lab.check()


async def test_a_result_that_cannot_be_planned_fails_its_step_and_holds_up_no_other(
    tray: Tray, monkeypatch: pytest.MonkeyPatch
) -> None:
    pointed = parked_decisions(tray, KILLS, "good")
    await tray.send(*(message for _, message in pointed))
    breaks(monkeypatch, KeyError("x"))

    while await tray.receive():
        pass

    assert [tray.lab.task(task).state for task, _ in pointed] == ["error", "complete"]
    assert await tray.waiting() == 0
    error = tray.lab.observer.value("select error from tasker.step_failures")
    assert (error["error_type"], error["retryable"]) == ("result_unusable", False)
    entry = "select fingerprints from tasker.tasks_dlq where task_uuid = %s"
    assert tray.lab.observer.value(entry, pointed[0][0]) == [error["fingerprint"]], "so that it is one of a group"


async def test_a_result_that_takes_too_long_stays_parked_however_often_and_holds_up_no_other(
    tray: Tray, monkeypatch: pytest.MonkeyPatch
) -> None:
    (slow, slow_message), (task, message) = parked_decisions(tray, KILLS, "good")
    await tray.send(slow_message, message)
    breaks(monkeypatch, StatementTimeout("too long"))

    for _ in range(20):
        await tray.receive()
        tray.lab.observer.execute("update pgmq.q_orchestration_step_results set vt = clock_timestamp()")

    assert tray.lab.task(task).state == "complete"
    assert tray.lab.states(slow) == {"d": "enqueued_for_orchestration"}
    monkeypatch.undo()
    assert await tray.receive() == 1
    assert tray.lab.task(slow).state == "complete"


async def test_what_was_ended_before_the_database_went_away_is_told(
    tray: Tray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for these tasks, and who is to be woken for what they made ready, would hear of it much later."""
    (good, first), (_, second) = parked_decisions(tray, "good", KILLS)
    await tray.send(first, second)
    breaks(monkeypatch, DatabaseUnavailable("gone"))

    with pytest.raises(DatabaseUnavailable):
        await tray.receive()

    assert [each.finished for each in tray.advanced] == [{good: "complete"}]


@asynccontextmanager
async def cut_off(tray: Tray, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[asyncio.Task[int]]:
    """A look is told to stop while it plans what a decision has decided, and does."""
    began = asyncio.Event()

    async def hangs(*_: Any) -> None:
        began.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr(ending, "plan_growth", hangs)
        look = asyncio.create_task(tray.receive())
        await asyncio.wait_for(began.wait(), 60)
        look.cancel()
        yield look
        await asyncio.wait([look], timeout=60)
    assert look.cancelled()


async def test_messages_of_a_look_that_is_cut_off_come_again_at_once(
    tray: Tray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that stops waits for a look for a few seconds; one message may point to many results."""
    pointed = parked_decisions(tray, *("good",) * 4)
    await tray.send(*(message for _, message in pointed))

    async with cut_off(tray, monkeypatch):
        pass

    while await tray.receive():
        pass
    assert [tray.lab.task(task).state for task, _ in pointed] == ["complete"] * 4
    assert await tray.waiting() == 0


async def test_messages_of_a_look_that_is_told_to_stop_once_more_come_again_all_the_same(
    tray: Tray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that stops tells its parts twice, also one that is giving back what it has in hand."""
    pointed = parked_decisions(tray, *("good",) * 2)
    await tray.send(*(message for _, message in pointed))
    giving_back, goes_on, nack = asyncio.Event(), asyncio.Event(), tray.messaging.nack_message

    async def slow(*args: Any) -> bool:
        giving_back.set()
        await goes_on.wait()
        return await nack(*args)

    with monkeypatch.context() as patch:
        patch.setattr(tray.messaging, "nack_message", slow)
        async with cut_off(tray, monkeypatch) as look:
            await asyncio.wait_for(giving_back.wait(), 60)
            look.cancel()
            goes_on.set()

    while await tray.receive():
        pass
    assert [tray.lab.task(task).state for task, _ in pointed] == ["complete"] * 2


@pytest.mark.parametrize("answers", [True, False])
async def test_a_look_that_is_cut_off_stops_also_where_its_messages_cannot_be_given_back(
    tray: Tray, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    ((_, message),) = parked_decisions(tray, "good")
    await tray.send(message)

    async def away(*_: Any) -> None:
        if not answers:
            await asyncio.Event().wait()
        raise BackendUnavailable("the broker is away")

    monkeypatch.setattr(receptions, "GIVE_BACK_SECONDS", 0.01)
    monkeypatch.setattr(tray.messaging, "nack_message", away)
    async with cut_off(tray, monkeypatch):
        pass


async def test_an_outage_counts_against_no_result(tray: Tray) -> None:
    task, message = tray.parked()
    await tray.send(message)
    for _ in range(12):
        with pytest.raises(DatabaseError):
            await tray.receive("postgresql://127.0.0.1:1/none")

    assert await tray.receive() == 1
    assert tray.lab.task(task).state == "complete"


async def test_messages_of_a_look_that_takes_long_stay_hidden_from_others(
    tray: Tray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hundreds of decisions in a database that is slow; a second orchestrator would make all of them, too."""
    pointed = parked_decisions(tray, "good", KILLS, "good")
    await tray.send(*(message for _, message in pointed))
    visible = "select count(*) from pgmq.q_orchestration_step_results where vt <= clock_timestamp() + interval '1 hour'"
    looks_of_another: list[int] = []
    plan_growth = ending.plan_growth

    async def soon(_: float, over: asyncio.Event) -> bool:
        await asyncio.sleep(0)
        return over.is_set()

    async def slow(engine: Engine, plan: Plan, *rest: Any) -> Any:
        if plan.name == KILLS and not looks_of_another:
            tray.lab.observer.execute("update pgmq.q_orchestration_step_results set vt = clock_timestamp()")
            async with asyncio.timeout(60):
                while tray.lab.observer.value(visible):
                    await asyncio.sleep(0)
            looks_of_another.append(await tray.receive())
        return await plan_growth(engine, plan, *rest)

    monkeypatch.setattr(receptions, "_within", soon)
    monkeypatch.setattr(ending, "plan_growth", slow)

    assert await tray.receive() == 3

    assert looks_of_another == [0]
    assert [tray.lab.task(task).state for task, _ in pointed] == ["complete"] * 3
    assert await tray.waiting() == 0
    assert tray.lab.observer.value("select count(*) from tasker.refused_results") == 0
