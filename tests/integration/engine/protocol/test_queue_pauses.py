"""Pauses of the orchestration queues: nothing is taken from them, nothing is lost, and sweeps respect them."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.orchestration.pending_work import ExclusiveTurns
from tasker.orchestration.queue_actors import PausableInbox, QueuePauses
from tests.integration.engine.protocol.conftest import AT_ONCE, Orchestra, at_once, result_of
from tests.integration.engine.protocol.messages.test_parked_batches import Queued, parked_tasks, queued, waiting
from tests.integration.engine.protocol.messages.test_wakeups import heard
from tests.integration.engine.protocol.sweeping.test_turns import Time
from tests.support.engine_fixture import Answer, Item, Lab

RESULTS, REQUESTS, FINALIZATIONS = (
    "orchestration_step_results",
    "orchestration_task_requests",
    "orchestration_task_finalizations",
)
WHY = {"actor": "ops", "reason": "a bad release"}

__all__ = ["queued"]


def pause(lab: Lab, queue: str) -> Answer:
    return lab.one.core("pause_queue", {"queue": queue, **WHY})


def resume(lab: Lab, queue: str) -> Answer:
    return lab.one.core("resume_queue", {"queue": queue, **WHY})


async def parked(queued: Queued) -> Item:
    """A parked result of an hour ago, with its message in the queue."""
    (claim,) = parked_tasks(queued, 1)
    await queued.park(result_of(queued.lab.chain(1), claim))
    queued.lab.observer.execute("update tasker.workflow_steps set hinted_at = hinted_at - interval '1 hour'")
    return claim


def looked(orchestra: Orchestra, settings: Any = AT_ONCE) -> Answer:
    """What a sweep would find now."""
    args = {"park_grace_ms": settings.ages.park_grace_ms, "idle_grace_ms": settings.ages.idle_grace_ms}
    queues = {"results_queue": RESULTS, "finalizations_queue": FINALIZATIONS}
    return orchestra.lab.one.core("sweep", {**args, **queues})


def unfinished_task(orchestra: Orchestra) -> str:
    """One that only an evaluation is missing for."""
    lab = orchestra.lab
    task = lab.submit_one(lab.chain(1))
    lab.one.run_all()
    lab.observer.execute(
        "update tasker.tasks set state = 'evaluating_results', complete = false, completed_at = null, "
        "updated_at = updated_at - interval '1 hour'"
    )
    return task


def test_audit_log_says_who_paused_and_who_resumed_a_queue_and_why(lab: Lab) -> None:
    lab.one.core("pause_queue", {"queue": REQUESTS, "actor": "ann", "reason": "a bad release"})
    lab.one.core("resume_queue", {"queue": REQUESTS, "actor": "ben", "reason": "it is rolled back"})

    logged = lab.observer.rows("select action, target, actor, reason from tasker.pause_log order by created_at")
    assert [tuple(row) for row in logged] == [
        ("pause", REQUESTS, "ann", "a bad release"),
        ("resume", REQUESTS, "ben", "it is rolled back"),
    ]


async def test_a_sweep_ends_no_parked_result_behind_the_back_of_a_pause(queued: Queued) -> None:
    lab = queued.lab
    claim = await parked(queued)
    pause(lab, RESULTS)

    assert await queued.sweep() == {}
    assert lab.states(claim["task"]) == {"s0": "enqueued_for_orchestration"}
    lab.check()

    resume(lab, RESULTS)
    assert await queued.receive() == 1
    assert lab.task(claim["task"]).complete
    assert await queued.sweep() == {}


async def test_what_waited_for_the_end_of_a_pause_is_not_taken_for_lost_at_once(queued: Queued) -> None:
    """Orchestrators have as long to take it as if it had come now; who lost its message then is found."""
    lab = queued.lab
    claim = await parked(queued)
    patient = at_once(park_grace_ms=60_000)
    assert looked(queued, patient)["parked"]
    pause(lab, RESULTS)
    resume(lab, RESULTS)

    assert "parked" not in looked(queued, patient)

    lab.one.set_time(61)
    assert [row["s"] for row in looked(queued, patient)["parked"]] == [claim["step"]]
    assert await queued.sweep() == {"result_message_lost": 1}


async def test_a_sweep_evaluates_no_task_while_finalizations_are_paused(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    task = unfinished_task(orchestra)
    pause(lab, FINALIZATIONS)

    assert await orchestra.sweep() == {}
    assert not lab.task(task).complete

    resume(lab, FINALIZATIONS)
    assert "unfinished" not in looked(orchestra, at_once(idle_grace_ms=60_000))
    assert await orchestra.sweep() == {"not_finished": 1}
    assert lab.task(task).state == "complete"


@pytest.mark.parametrize("queue", [RESULTS, REQUESTS, FINALIZATIONS])
async def test_tasks_run_to_their_end_while_a_queue_is_paused_that_they_do_not_pass(
    orchestra: Orchestra, queue: str
) -> None:
    lab = orchestra.lab
    pause(lab, queue)
    task = lab.submit_one(lab.chain(2))

    assert lab.one.run_all() == 2

    assert lab.task(task).state == "complete"
    assert await orchestra.sweep() == {}
    lab.check()


async def test_the_pause_of_another_queue_holds_no_repair_up(queued: Queued) -> None:
    await parked(queued)
    pause(queued.lab, REQUESTS)
    pause(queued.lab, FINALIZATIONS)

    assert await queued.sweep() == {"result_message_lost": 1}


async def test_nothing_is_taken_before_a_process_knows_what_is_paused_and_while_it_is(queued: Queued) -> None:
    lab, news = queued.lab, []
    await parked(queued)
    pauses = QueuePauses(queued.engine, lambda: news.append(1))
    inbox = PausableInbox(queued.results, RESULTS, pauses)
    turns = ExclusiveTurns(queued.engine, "sweep", Time(), _Half(), 5.0, pauses.update)

    async def take() -> int:
        return await inbox.receive(queued.caller(), 100)

    assert await take() == 0, "it might be paused"
    pause(lab, RESULTS)
    await turns.take()
    assert (await take(), await waiting(queued), len(news)) == (0, 1, 1)
    received = "select count(*) from pgmq.q_orchestration_step_results where read_ct > 0"
    assert lab.observer.value(received) == 0

    resume(lab, RESULTS)
    await turns.take()
    await turns.take()

    assert (await take(), await waiting(queued), len(news)) == (1, 0, 2)


class _Half:
    def random(self) -> float:
        return 0.5


def test_pauses_and_resumptions_are_logged_and_announced_once(lab: Lab) -> None:
    ears = lab.session()
    ears.execute("listen tasker_queues")

    assert pause(lab, RESULTS) == {"paused": True}
    assert pause(lab, RESULTS) == {"paused": False}
    found = lab.one.core("paused", {})
    assert [(entry["queue"], entry["actor"], entry["reason"]) for entry in found["pauses"]] == [
        (RESULTS, "ops", "a bad release")
    ]
    assert resume(lab, RESULTS) == {"resumed": True}
    assert resume(lab, RESULTS) == {"resumed": False}

    found = lab.one.core("paused", {})
    assert found["pauses"] == []
    assert [(entry["action"], entry["target"]) for entry in found["log"]] == [("resume", RESULTS), ("pause", RESULTS)]
    assert heard(ears.connection) == [RESULTS, RESULTS]


def test_of_two_who_pause_and_resume_at_once_each_is_told_what_became_of_it(lab: Lab) -> None:
    with lab.transaction(lab.one):
        assert pause(lab, RESULTS)["paused"]
        other = lab.later(lab.two.core, "pause_queue", {"queue": RESULTS, **WHY})
        lab.waits(other, lab.two, on=lab.one)
    assert not other.result(timeout=30)["paused"]

    with lab.transaction(lab.one):
        assert resume(lab, RESULTS)["resumed"]
        other = lab.later(lab.two.core, "resume_queue", {"queue": RESULTS, **WHY})
        lab.waits(other, lab.two, on=lab.one)
    assert not other.result(timeout=30)["resumed"]
    assert lab.one.core("paused_queues", {}) == {"paused_queues": []}
