"""Steps that nobody served begin soon when somebody comes, whatever else happens at that moment."""

from __future__ import annotations

from contextlib import suppress

from tests.integration.engine.protocol.unserved.conftest import complete, set_aside, submitted
from tests.support.engine_fixture import Lab, Session, change
from tests.support.fleets.at_work import AtWork


def beat(session: Session) -> None:
    session.core("worker", {"action": "beat", "worker": session.worker, "lease_ms": 30_000})


def may_be_released(session: Session) -> bool:
    return bool(session.claim_answer().get("release"))


def test_who_comes_while_a_step_is_set_aside_finds_it(lab: Lab) -> None:
    """Neither transaction sees the other: who comes waits until the other has committed, and looks then."""
    lab.window = 1
    submitted(lab, "lost", 2)
    one = AtWork(lab, lab.one, "lost")
    one.look()

    with lab.transaction(lab.one):
        one.look()
        coming = lab.later(lab.two.start_worker)
        lab.waits(coming, lab.two, on=lab.one)
    coming.result(timeout=60)

    assert may_be_released(lab.two)


def test_nothing_is_set_aside_while_somebody_comes_and_nobody_waits_for_him(lab: Lab) -> None:
    lab.window = 1
    tasks = submitted(lab, "lost", 2)
    one = AtWork(lab, lab.one, "lost")
    one.look()

    with lab.transaction(lab.two):
        lab.two.start_worker()
        one.look()
        assert not lab.one.call("backlog", lab.one.args(window=5)).get("claims")
    assert set_aside(lab) == 0
    assert {lab.states(task)["lost"] for task in tasks} == {"enqueued"}
    assert lab.queue_depth() == 2, "their hints are there"


def test_two_who_come_at_once_do_not_wait_for_each_other(lab: Lab) -> None:
    with lab.transaction(lab.one):
        lab.one.start_worker()
        lab.later(lab.two.start_worker).result(timeout=60)


def test_a_look_that_is_lost_in_the_middle_leaves_all_as_it_was(lab: Lab) -> None:
    lab.window = 1
    (task,) = submitted(lab, "lost")
    one = AtWork(lab, lab.one, "lost")
    one.look()

    with suppress(ZeroDivisionError), lab.transaction(lab.one):
        one.look()
        assert lab.one.rows("select from tasker.ready_backlog where unserved is not null")
        raise ZeroDivisionError
    assert (set_aside(lab), lab.queue_depth(), lab.states(task)) == (0, 1, {"lost": "enqueued"})

    one.look()
    assert (set_aside(lab), lab.queue_depth(), lab.states(task)) == (1, 0, {"lost": "pending"})


def test_who_comes_and_dies_before_he_looks_holds_up_nobody_for_longer_than_his_lease(lab: Lab) -> None:
    lab.window = 1
    submitted(lab, "lost", 3)
    one = AtWork(lab, lab.one, "lost").work()
    lab.two.start_worker()
    served = submitted(lab, "served", 2)
    one.work()

    lab.one.set_time(60)
    beat(lab.one)
    lab.observer.execute(f"update pgmq.q_worker_{lab.namespace}_queue set vt = clock_timestamp()")
    one.work()

    assert complete(lab, served)
    assert set_aside(lab) == 3


def test_one_whose_lease_was_over_and_goes_on_is_asked_within_a_minute(lab: Lab) -> None:
    lab.window = 1
    two = AtWork(lab, lab.two)
    lost = submitted(lab, "lost", 3)
    for session in (lab.one, lab.two):
        session.set_time(60)
    AtWork(lab, lab.one, "lost").work()
    assert set_aside(lab) == 3
    lab.one.call("repair", {"every_ms": 0})
    assert set_aside(lab) == 3, "all who are there have refused them"

    beat(lab.two)
    lab.one.call("repair", {"every_ms": 0})
    assert set_aside(lab) == 2

    two.work()
    assert complete(lab, lost)


def test_when_the_step_that_was_tried_is_cancelled_another_is_tried_within_a_minute(lab: Lab) -> None:
    lab.window = 1
    submitted(lab, "lost", 3)
    AtWork(lab, lab.one, "lost").work()
    two = AtWork(lab, lab.two)
    query = "select task_uuid::text from tasker.ready_backlog where unserved is null"
    lab.one.call("cancel", {"task": lab.observer.value(query), "reason": "", "actor": ""})
    assert not two.look()

    lab.one.call("repair", {"every_ms": 0})
    two.work()

    assert len(two.done) == 2


def test_a_worker_that_sleeps_is_told_when_it_may_have_other_handlers_now(lab: Lab) -> None:
    lab.window = 1
    submitted(lab, "lost")
    AtWork(lab, lab.one, "lost").work()
    lab.observer.execute("listen tasker_work")

    lab.one.core("worker", {"action": "serve", "worker": lab.one.worker, "namespaces": [lab.namespace]})

    notices = [each.payload for each in lab.observer.connection.notifies(timeout=30, stop_after=1)]
    assert notices == [f"@{lab.namespace}"]
    assert may_be_released(lab.one)


def test_of_two_namespaces_of_one_worker_another_worker_keeps_the_steps_of_his(lab: Lab) -> None:
    """Who serves only the other namespace is not asked; who serves this one and has refused nothing is."""
    other = Lab(lab.url, window=1)
    try:
        (task,) = submitted(lab, "lost")
        both = {"namespaces": [lab.namespace, other.namespace], "namespace_ids": [lab.namespace_id, other.namespace_id]}
        one, _ = AtWork(lab, lab.one, "lost"), AtWork(lab, lab.two)
        args = {"action": "serve", "worker": lab.one.worker, "namespaces": both["namespaces"]}
        lab.one.core("worker", args)
        one.work(rounds=3, **both)
        assert (set_aside(lab), lab.states(task)) == (0, {"lost": "enqueued"})
    finally:
        other.close()


def test_a_task_that_ends_takes_its_steps_that_were_set_aside_with_it(lab: Lab) -> None:
    lab.window = 1
    (task,) = submitted(lab, "lost")
    AtWork(lab, lab.one, "lost").work()

    lab.one.call("cancel", {"task": task, "reason": "", "actor": ""})

    assert (set_aside(lab), lab.task(task).held, lab.task(task).state) == (0, 0, "cancelled")


def test_a_claim_given_back_by_a_worker_that_stops_sets_nothing_aside(lab: Lab) -> None:
    lab.one.start_worker()
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(change("release", claims["s0"]))

    assert [claim["name"] for claim in lab.one.claim()] == ["s0"]
    assert set_aside(lab) == 0
    assert lab.task(task).held == 0
