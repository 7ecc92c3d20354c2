"""Pauses: what is paused does not start, loses nothing and no attempt, and goes on from there when it is resumed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engine_fixture import Answer, Lab, change, operator, retry
from tests.support.random_plans import Spec

WHY = {"actor": "ops", "reason": "the provider is down"}


def pause(lab: Lab, **target: Any) -> Answer:
    return lab.one.call("pause", {"namespace": lab.namespace, **WHY, **target})


def resume(lab: Lab, **target: Any) -> Answer:
    return lab.one.call("resume", {"namespace": lab.namespace, **WHY, **target})


def work(lab: Lab) -> int:
    """Claim, release and finish as a worker does until nothing moves; how many steps ran."""
    done = 0
    while True:
        answer = lab.one.claim_answer()
        claims = answer.get("claims") or []
        lab.one.finish(*claims)
        done += len(claims)
        released = lab.one.call("backlog", lab.one.args()).get("released") if answer.get("release") else 0
        if not claims and not released and not answer["popped"]:
            return done
        lab.check()


def targets(lab: Lab, task: str) -> dict[str, dict[str, Any]]:
    return {
        "namespace": {},
        "template": {"template": "flow"},
        "step": {"template": "flow", "step": "a"},
        "task": {"task": task},
    }


@pytest.mark.parametrize("scope", ["namespace", "template", "step", "task"])
def test_an_enqueued_step_that_is_paused_is_put_aside_and_runs_after_the_resume(lab: Lab, scope: str) -> None:
    task = lab.submit_one(lab.plan(Spec("a")))
    target = targets(lab, task)[scope]
    assert pause(lab, **target)["paused"]

    answer = lab.one.claim_answer()

    assert not answer.get("claims")
    assert list((answer["verdicts"] or {}).values()) == ["held"]
    assert lab.states(task) == {"a": "pending"}
    assert (lab.task(task).state, lab.task(task).held) == ("waiting_for_dependencies", 1)
    assert lab.steps(task)["a"].attempts == 0
    assert lab.queue_depth() == 0
    lab.check()
    assert resume(lab, **target) == {"resumed": True, "held": 1, "sent": {}}
    assert work(lab) == 1
    assert lab.task(task).state == "complete"
    assert lab.steps(task)["a"].attempts == 1
    assert lab.step_paths(task, "a")[:3] == ["pending>enqueued", "enqueued>pending", "pending>enqueued"]


@pytest.mark.parametrize("scope", ["namespace", "template", "step"])
def test_a_task_submitted_into_a_pause_waits_for_its_end(lab: Lab, scope: str) -> None:
    plan = lab.plan(Spec("a"))
    task = lab.submit_one(plan)
    work(lab)
    target = targets(lab, task)[scope]
    pause(lab, **target)

    later = lab.submit_one(plan)

    assert lab.states(later) == {"a": "pending"}
    assert lab.queue_depth() == 0
    assert work(lab) == 0
    resume(lab, **target)
    assert work(lab) == 1


def test_what_becomes_ready_while_it_is_paused_is_neither_handed_over_nor_enqueued(lab: Lab) -> None:
    task, claims = lab.running(lab.chain())
    pause(lab, template="chain", step="s1")

    answer = lab.one.finish(claims["s0"], slots=5)

    assert not answer.get("claims")
    assert lab.states(task) == {"s0": "complete", "s1": "pending"}
    assert lab.queue_depth() == 0
    resume(lab, template="chain", step="s1")
    assert work(lab) == 1


def test_steps_beside_the_paused_one_go_on(lab: Lab) -> None:
    task = lab.submit_one(lab.plan(Spec("a"), Spec("b"), Spec("c", depends_on=("b",))))
    pause(lab, template="flow", step="a")

    assert work(lab) == 2

    assert lab.states(task) == {"a": "pending", "b": "complete", "c": "complete"}


def test_roots_beside_a_paused_root_are_released_when_the_task_is_submitted_into_the_pause(lab: Lab) -> None:
    plan = lab.plan(Spec("a"), Spec("b"))
    lab.submit_one(plan)
    pause(lab, template="flow", step="a")
    task = lab.submit_one(plan)

    work(lab)

    assert lab.states(task) == {"a": "pending", "b": "complete"}


def test_other_templates_and_tasks_go_on(lab: Lab) -> None:
    paused, other = lab.submit_one(lab.chain(name="slow")), lab.submit_one(lab.chain(name="quick"))
    pause(lab, template="slow")
    sibling = lab.submit_one(lab.chain(name="quick"))
    pause(lab, task=sibling)

    work(lab)

    assert [lab.task(task).state for task in (paused, other, sibling)] == [
        "waiting_for_dependencies",
        "complete",
        "waiting_for_dependencies",
    ]


def test_a_running_step_ends_and_its_retry_is_held(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    pause(lab)
    lab.one.advance(retry(claims["s0"], delay_ms=0))

    lab.one.call("due", lab.one.args(slots=5))

    assert lab.states(task) == {"s0": "pending"}
    resume(lab)
    assert work(lab) == 1
    assert lab.steps(task)["s0"].attempts == 2


def test_a_released_step_is_put_aside_by_the_next_claim(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    pause(lab)
    lab.one.advance(change("release", claims["s0"]))

    lab.one.claim_answer()

    assert lab.states(task) == {"s0": "pending"}
    assert lab.steps(task)["s0"].attempts == 0


def test_a_step_that_two_pauses_hold_waits_for_both(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1))
    pause(lab)
    pause(lab, task=task)
    lab.one.claim_answer()

    assert resume(lab)["held"] == 0
    assert work(lab) == 0
    assert resume(lab, task=task)["held"] == 1
    assert work(lab) == 1


def test_paused_steps_take_no_room_from_others_and_do_not_stop_the_backlog(lab: Lab) -> None:
    lab.window = 4
    lab.submit(lab.chain(1, name="slow"), *({} for _ in range(20)))
    quick = lab.submit(lab.chain(1, name="quick"), *({} for _ in range(10)))
    pause(lab, template="slow")

    work(lab)

    assert {lab.task(task).state for task in quick} == {"complete"}
    resume(lab, template="slow")
    assert work(lab) == 20


def test_a_pause_holds_what_was_held_for_want_of_room(lab: Lab) -> None:
    lab.window = 1
    lab.submit(lab.chain(1), *({} for _ in range(5)))
    pause(lab)
    lab.one.claim_answer()

    assert not lab.one.call("backlog", lab.one.args()).get("released")
    resume(lab)
    assert work(lab) == 5


def test_resuming_waits_for_a_write_that_holds_steps_because_of_the_pause(lab: Lab) -> None:
    """Else the step would stay held for ever: the write commits after the pause has ended."""
    task, claims = lab.running(lab.chain())
    pause(lab)
    with lab.transaction(lab.one):
        lab.one.finish(claims["s0"])
        ended = lab.later(lab.two.call, "resume", {"namespace": lab.namespace, **WHY})
        lab.waits(ended, lab.two, on=lab.one)

    assert ended.result()["held"] == 1
    assert work(lab) == 1
    assert lab.task(task).state == "complete"


def test_a_write_that_did_not_see_the_pause_is_caught_at_the_claim(lab: Lab) -> None:
    task, claims = lab.running(lab.chain())
    with lab.transaction(lab.two):
        lab.two.call("pause", {"namespace": lab.namespace, **WHY})
        lab.one.finish(claims["s0"])

    assert not lab.one.claim_answer().get("claims")
    assert lab.states(task)["s1"] == "pending"


def test_a_claim_never_waits_for_the_task_of_a_paused_step(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1))
    pause(lab)
    with lab.transaction(lab.two):
        lab.two.execute("select from tasker.tasks where task_uuid = %s for no key update", task)
        answer = lab.one.claim_answer()
        assert answer["sent"] == {lab.namespace: 1}, "hinted again, for later"

    assert lab.states(task) == {"s0": "enqueued"}


def test_paused_steps_can_be_cancelled_resolved_and_reset(lab: Lab) -> None:
    cancelled, resolved = lab.submit(lab.chain(1), {}, {})
    pause(lab)
    pause(lab, task=cancelled)
    lab.one.claim_answer()

    lab.one.call("cancel", {"task": cancelled, "reason": "", "actor": ""})
    lab.one.advance(operator("resolve", lab.steps(resolved)["s0"]))

    assert lab.task(cancelled).state == "cancelled"
    assert lab.task(resolved).state == "complete"
    assert [entry["task"] for entry in lab.one.core("paused", {})["pauses"] if entry["namespace"] == lab.namespace] == [
        None
    ]


def test_a_pause_is_made_once_and_ended_once_and_what_is_paused_is_told(lab: Lab) -> None:
    lab.submit_one(lab.chain(1))
    pause(lab, template="chain")
    lab.one.claim_answer()

    assert not pause(lab, template="chain", reason="another")["paused"]
    (entry,) = [entry for entry in lab.one.core("paused", {})["pauses"] if entry["namespace"] == lab.namespace]
    assert (entry["template"], entry["step"], entry["task"], entry["held"]) == ("chain", None, None, 1)
    assert (entry["actor"], entry["reason"]) == ("ops", "the provider is down")
    assert not resume(lab)["resumed"]
    assert resume(lab, template="chain")["resumed"]
    assert not resume(lab, template="chain")["resumed"]
    log = [entry for entry in lab.one.core("paused", {})["log"] if entry["target"] == f"{lab.namespace}/chain"]
    assert [(entry["action"], entry["actor"]) for entry in log] == [("resume", "ops"), ("pause", "ops")]


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ({"namespace": "nowhere"}, "namespace"),
        ({"template": "none"}, "template"),
        ({"template": "chain", "step": "none"}, "step"),
        ({"task": "00000000-0000-7000-8000-000000000000"}, "task"),
    ],
)
def test_what_does_not_exist_cannot_be_paused(lab: Lab, target: dict[str, str], answer: str) -> None:
    lab.submit_one(lab.chain(1))

    assert pause(lab, **target)["missing"] == answer


def test_a_task_that_has_ended_cannot_be_paused(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1))
    work(lab)

    assert pause(lab, task=task)["final"] == "complete"


def test_a_task_that_ends_while_it_is_paused_is_paused_no_more_and_its_pause_goes(lab: Lab) -> None:
    """While there is any pause, nobody's results go the short way."""
    task = lab.submit_one(lab.plan(Spec("a")))
    (running,) = lab.one.claim()
    assert pause(lab, task=task)["paused"]
    assert pause(lab, template="flow", step="a")["paused"]

    lab.one.finish(running)

    assert [each["task"] for each in lab.one.call("paused", {})["pauses"]] == [None]
    lab.one.call("repair", {"every_ms": 0})
    assert lab.observer.rows("select task_uuid, step from tasker.pauses") == [(None, "a")]
    lab.check()
