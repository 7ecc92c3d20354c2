"""Rules 16 and 17: what no live worker has a handler for waits beside the queue and takes nobody's room."""

from __future__ import annotations

import pytest

from tests.integration.engine.protocol.unserved.conftest import complete, set_aside, submitted
from tests.support.engine_fixture import Lab
from tests.support.fleets.at_work import AtWork
from tests.support.random_plans import Spec


def test_three_steps_that_nobody_serves_do_not_fill_a_window_of_one(lab: Lab) -> None:
    lab.window = 1
    lost, served = submitted(lab, "lost", 3), submitted(lab, "served", 3)

    worker = AtWork(lab, lab.one, "lost").work(rounds=10)

    assert complete(lab, served)
    assert {lab.states(task)["lost"] for task in lost} == {"pending"}
    assert (set_aside(lab), lab.queue_depth()) == (3, 0)
    assert {lab.steps(task)["lost"].attempts for task in lost} == {0}, "nobody has run them"
    assert not worker.look(), "nothing is left to do for an idle worker"
    assert not lab.one.claim_answer().get("release")


@pytest.mark.parametrize("slots", [1, 5])
def test_many_that_nobody_serves_are_passed_by_with_work_for_each_of_them(lab: Lab, slots: int) -> None:
    lab.window = 2
    submitted(lab, "lost", 120)
    served = submitted(lab, "served", 5)
    worker = AtWork(lab, lab.one, "lost", slots=slots)

    while not complete(lab, served):
        assert worker.look()
        assert lab.queue_depth() <= lab.window + slots, "no more hints than the window allows and what is given back"
    worker.work()

    assert worker.calls < 40
    assert (set_aside(lab), lab.queue_depth()) == (120, 0)


def test_all_complete_soon_when_a_worker_comes_that_has_the_handler(lab: Lab) -> None:
    lab.window = 2
    lost, served = submitted(lab, "lost", 30), submitted(lab, "served", 3)
    AtWork(lab, lab.one, "lost").work()
    assert complete(lab, served)

    AtWork(lab, lab.two, slots=5).work(rounds=40)

    assert complete(lab, lost)
    assert set_aside(lab) == 0


def test_who_has_the_handler_soon_gets_as_many_as_it_has_slots(lab: Lab) -> None:
    """The first is a trial, behind which twice as many come."""
    lost = submitted(lab, "lost", 60)
    AtWork(lab, lab.one, "lost").work(rounds=200)
    assert set_aside(lab) == 60

    two = AtWork(lab, lab.two, slots=10).work()

    assert complete(lab, lost)
    assert two.calls < 30


def test_a_worker_that_comes_and_lacks_it_too_tries_a_few(lab: Lab) -> None:
    """It is asked once for each step of a template, not for each step that waits."""
    lab.window = 5
    submitted(lab, "lost", 60)
    submitted(lab, "gone", 60)
    AtWork(lab, lab.one, "lost", "gone").work()
    assert set_aside(lab) == 120

    served = submitted(lab, "served", 3)
    worker = AtWork(lab, lab.two, "lost", "gone").work(rounds=12)

    assert complete(lab, served)
    assert (set_aside(lab), lab.queue_depth()) == (120, 0)
    assert worker.calls <= 14


def test_another_worker_that_may_have_it_is_asked_first(lab: Lab) -> None:
    lab.window = 1
    (task,), _ = submitted(lab, "lost"), submitted(lab, "served")
    first, second = AtWork(lab, lab.one, "lost"), AtWork(lab, lab.two)

    first.work(rounds=3)
    assert (lab.states(task)["lost"], set_aside(lab)) == ("enqueued", 0)

    lab.observer.execute(f"update pgmq.q_worker_{lab.namespace}_queue set vt = clock_timestamp()")
    second.work()
    assert complete(lab, [task])


def test_a_worker_that_drains_or_is_gone_is_not_waited_for(lab: Lab) -> None:
    lab.window = 1
    submitted(lab, "lost", 2)
    served = submitted(lab, "served", 2)
    AtWork(lab, lab.two)
    lab.two.core("worker", {"action": "drain", "worker": lab.two.worker})

    AtWork(lab, lab.one, "lost").work()

    assert complete(lab, served)
    assert set_aside(lab) == 2


def test_priority_and_age_order_what_is_served_and_what_was_set_aside(lab: Lab) -> None:
    lab.window = 1
    (old,) = submitted(lab, "lost")
    (young,) = submitted(lab, "lost")
    (urgent,) = submitted(lab, "lost", priority=5)
    plain, swift = submitted(lab, "served")[0], submitted(lab, "served", priority=5)[0]

    one = AtWork(lab, lab.one, "lost").work()
    assert one.tasks == [swift, plain]

    two = AtWork(lab, lab.two).work()
    assert two.tasks == [urgent, old, young]


@pytest.mark.parametrize("scope", [{"template": "lost_flow"}, {}], ids=["template", "namespace"])
def test_a_pause_holds_what_was_set_aside_and_its_end_lets_it_go(lab: Lab, scope: dict[str, str]) -> None:
    lab.window = 1
    lost, served = submitted(lab, "lost", 3), submitted(lab, "served", 2)
    AtWork(lab, lab.one, "lost").work()
    pause = {"namespace": lab.namespace, **scope, "actor": "ada", "reason": "audit"}
    lab.one.core("pause", pause)

    two = AtWork(lab, lab.two).work()
    assert not two.done

    lab.one.core("resume", pause)
    two.work()
    assert complete(lab, [*lost, *served])


def test_a_step_that_is_paused_and_unserved_is_held_by_its_pause(lab: Lab) -> None:
    lab.window = 1
    lost = submitted(lab, "lost", 2)
    worker = AtWork(lab, lab.one, "lost")
    worker.look()
    pause = {"namespace": lab.namespace, "template": "lost_flow", "actor": "ada", "reason": "audit"}
    lab.one.core("pause", pause)

    worker.work()

    query = "select paused, unserved from tasker.ready_backlog where namespace_id = %s"
    assert lab.observer.rows(query, lab.namespace_id) == [(True, None), (True, None)]
    lab.one.core("resume", pause)
    served = submitted(lab, "served", 2)
    worker.work()
    assert (complete(lab, served), set_aside(lab)) == (True, len(lost))


def test_of_two_namespaces_one_has_the_handler_and_does_not_wait_for_the_other(lab: Lab) -> None:
    lab.window = 1
    other = Lab(lab.url, window=1)
    try:
        lost, served = submitted(lab, "lost", 4), submitted(lab, "served", 2)
        theirs = submitted(other, "lost", 4)
        AtWork(other, other.one).work()
        assert complete(other, theirs)

        both = {"namespaces": [lab.namespace, other.namespace], "namespace_ids": [lab.namespace_id, other.namespace_id]}
        AtWork(lab, lab.one, "lost", slots=2).work(**both)
        assert complete(lab, served)
        assert {lab.states(task)["lost"] for task in lost} == {"pending"}

        AtWork(other, other.two).work()
        assert set_aside(lab) == 4, "who comes to another namespace is nobody here"
    finally:
        other.close()


def test_steps_that_become_ready_later_are_set_aside_as_well(lab: Lab) -> None:
    lab.window = 1
    plan = lab.plan(Spec("served"), Spec("lost", depends_on=("served",)), Spec("last", depends_on=("lost",)))
    tasks = lab.submit(plan, *({} for _ in range(6)))

    one = AtWork(lab, lab.one, "lost").work()
    assert one.done == ["served"] * 6
    assert (set_aside(lab), lab.queue_depth()) == (6, 0)

    AtWork(lab, lab.two).work()
    assert complete(lab, tasks)
