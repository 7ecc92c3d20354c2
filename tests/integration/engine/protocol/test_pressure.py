"""Admission on real queues: refused above the limit, with a time from the measured rate; taken again below it."""

from __future__ import annotations

import pytest

from tasker.clock import new_task_uuid
from tasker.engine.plans import PlanStore
from tasker.errors import Overloaded
from tasker.resilience.pressure import Level
from tasker.services.submission.admission import SubmissionAdmission
from tasker.services.submission.submit import Submission, Submitter
from tasker.settings.queues import DepthThresholds
from tests.integration.engine.protocol.conftest import Orchestra
from tests.support.random_plans import Spec


class Time:
    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> None:
        raise AssertionError("rates need no calendar")


def admission(orchestra: Orchestra, time: Time) -> SubmissionAdmission:
    return SubmissionAdmission(orchestra.engine, time, DepthThresholds(critical_threshold=10, overflow_threshold=20))  # type: ignore[arg-type]


async def test_enqueued_held_and_paused_steps_all_count(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.window = 3
    plan = lab.chain(1)
    lab.submit(plan, *({} for _ in range(5)))
    lab.one.core("pause", {"namespace": lab.namespace, "actor": "", "reason": ""})
    lab.submit(plan, {})

    found = await admission(orchestra, Time()).admission(lab.namespace)

    assert (found.enqueued, found.held, found.paused, found.depth) == (3, 0, 3, 6)
    assert (found.level, found.accepts) == (Level.WARNING, True)


async def test_above_the_limit_the_rate_gives_the_time_to_come_back(orchestra: Orchestra) -> None:
    lab, time = orchestra.lab, Time()
    gate = admission(orchestra, time)
    lab.submit(lab.chain(1), *({} for _ in range(30)))
    first = await gate.admission(lab.namespace)
    time.seconds = 5.0
    lab.one.finish(*lab.one.claim(10))

    second = await gate.admission(lab.namespace)

    assert (first.level, first.retry_after, first.per_second) == (Level.OVERFLOW, 30, None)
    assert (second.depth, second.per_second) == (20, 2.0)
    assert second.retry_after == 8, "15 steps until half of the limit, 2 a second"


async def test_submitting_is_refused_above_the_limit_and_creates_nothing(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    plan = lab.chain(1)
    submitter = Submitter(
        orchestra.engine, PlanStore(orchestra.engine.connection), new_task_uuid, admission=admission(orchestra, Time())
    )
    for n in range(10):
        await submitter.submit(plan, Submission({"n": n}))

    with pytest.raises(Overloaded, match="has 10 ready steps, the limit is 10") as caught:
        await submitter.submit(plan, Submission({"n": 10}))
    assert caught.value.retry_after == 30
    assert lab.observer.value("select count(*) from tasker.tasks") == 10

    lab.one.finish(*lab.one.claim(1))
    await submitter.submit(plan, Submission({"n": 11}))


async def test_a_namespace_that_nobody_knows_yet_takes_work(orchestra: Orchestra) -> None:
    assert (await admission(orchestra, Time()).admission("fresh")).accepts


async def test_with_room_left_one_look_serves_for_a_second_and_what_is_added_meanwhile_counts(
    orchestra: Orchestra,
) -> None:
    lab, time = orchestra.lab, Time()
    gate, plan = admission(orchestra, time), lab.plan(Spec("a"), Spec("b"), Spec("c", depends_on=("a", "b")))
    await gate.require(plan)
    lab.submit(lab.chain(1), *({} for _ in range(30)))  # somebody else does that
    for _ in range(2):
        await gate.require(plan, 2)
    with pytest.raises(Overloaded):  # 2 + 4 + 4 roots are as many as it takes: it looks again
        await gate.require(plan)

    assert gate.refused == {lab.namespace: 1}


async def test_after_a_second_it_looks_again(orchestra: Orchestra) -> None:
    lab, time = orchestra.lab, Time()
    gate, plan = admission(orchestra, time), lab.chain(1)
    await gate.require(plan)
    lab.submit(plan, *({} for _ in range(30)))
    time.seconds = 1.0

    with pytest.raises(Overloaded):
        await gate.require(plan)


async def test_every_change_of_the_level_is_said_once(orchestra: Orchestra, caplog: pytest.LogCaptureFixture) -> None:
    lab, gate = orchestra.lab, admission(orchestra, Time())
    plan = lab.chain(1)
    with caplog.at_level("INFO", "tasker.submission"):
        for more in (4, 1, 5, 10):
            lab.submit(plan, *({} for _ in range(more)))
            await gate.admission(lab.namespace)
        lab.one.finish(*lab.one.claim(20))
        await gate.admission(lab.namespace)

    said = [(record.levelname, record.getMessage().partition(" level=")[2]) for record in caplog.records]
    limits = "critical=10 overflow=20"
    assert said == [
        ("WARNING", f"warning depth=5 {limits}"),
        ("WARNING", f"critical depth=10 {limits}"),
        ("ERROR", f"overflow depth=20 {limits}"),
        ("INFO", f"normal depth=0 {limits}"),
    ]
    assert gate.overflows[lab.namespace] == 1
