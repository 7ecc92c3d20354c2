"""Two sessions at one key: the second sees what the first did, and none waits that holds what others need."""

from __future__ import annotations

import psycopg
import pytest

from tests.integration.engine.protocol.test_delays import WHY, due
from tests.integration.engine.protocol.test_limits import limited, permits, repairs, run, submitted, waiting
from tests.support.engine_fixture import Lab, ok


def lock_of(lab: Lab, value: str) -> int:
    return int(lab.observer.value("select tasker.limit_lock(rule_id, %s) from tasker.limit_rules", value))


def test_a_step_that_comes_while_the_last_permit_ends_gets_it(lab: Lab) -> None:
    plan = limited(lab)
    _, (claim,) = run(lab, plan, "a")
    (task,) = lab.submit(plan, {"context": {"customer": "a"}})

    with lab.transaction(lab.one):
        lab.one.finish(claim)
        coming = lab.later(due, lab.two)
        lab.waits(coming, lab.two, on=lab.one)

    coming.result(timeout=30)
    assert lab.states(task)["a"] == "enqueued"
    assert (permits(lab), waiting(lab)) == ([("a", 1)], [])


def test_a_permit_that_ends_while_a_step_comes_goes_to_it(lab: Lab) -> None:
    plan = limited(lab)
    _, (claim,) = run(lab, plan, "a")
    (task,) = lab.submit(plan, {"context": {"customer": "a"}})

    with lab.transaction(lab.two):
        due(lab.two)
        ending = lab.later(lab.one.finish, claim)
        lab.waits(ending, lab.one, on=lab.two)

    ending.result(timeout=30)
    assert lab.states(task)["a"] == "enqueued"
    assert (permits(lab), waiting(lab)) == ([("a", 1)], [])


def test_of_two_writes_that_end_permits_each_grants_its_own(lab: Lab) -> None:
    tasks, claims = run(lab, limited(lab, 2), *"aaaa")

    with lab.transaction(lab.one):
        lab.one.finish(claims[0])
        second = lab.later(lab.two.finish, claims[1])
        lab.waits(second, lab.two, on=lab.one)

    second.result(timeout=30)
    assert [lab.states(task)["a"] for task in tasks[2:]] == ["enqueued", "enqueued"]
    assert (permits(lab), waiting(lab)) == ([("a", 2)], [])


def test_a_rolled_back_end_keeps_its_permit(lab: Lab) -> None:
    _, (claim,) = run(lab, limited(lab), *"aa")

    with lab.transaction(lab.one):
        lab.one.finish(claim)
        raise psycopg.Rollback

    assert (permits(lab), waiting(lab)) == ([("a", 1)], [("a", 1)])
    lab.one.finish(claim)
    assert (permits(lab), waiting(lab)) == ([("a", 1)], [])


def test_the_locks_of_keys_are_taken_in_one_order(lab: Lab) -> None:
    letters = [chr(ord("a") + n) for n in range(9)]
    _, claims = run(lab, limited(lab), *letters)
    locks = sorted({lock_of(lab, letter) for letter in letters})
    middle = locks[len(locks) // 2]
    probe = lab.session()

    with lab.transaction(lab.two):
        lab.two.execute("select pg_advisory_xact_lock(%s)", middle)
        ending = lab.later(lab.one.finish, *reversed(claims))
        lab.waits(ending, lab.one, on=lab.two)
        with lab.transaction(probe):
            free = [lock for lock in locks if probe.value("select pg_try_advisory_xact_lock(%s)", lock)]

    ending.result(timeout=30)
    assert free == [lock for lock in locks if lock > middle]


def test_a_write_of_many_keys_takes_few_locks(lab: Lab) -> None:
    _, claims = run(lab, limited(lab), *(f"customer {n}" for n in range(200)))

    with lab.transaction(lab.one):
        lab.one.finish(*claims)
        query = "select count(*) from pg_locks where locktype = 'advisory' and pid = %s and objsubid = 1"
        assert lab.observer.value(query, lab.one.pid) <= 64


def test_a_locked_task_gives_way_to_the_next_and_has_its_turn_later(lab: Lab) -> None:
    tasks, (claim,) = run(lab, limited(lab), *"aaa")

    with lab.transaction(lab.two):
        lab.two.execute("select from tasker.tasks where task_uuid = %s for update", tasks[1])
        lab.one.finish(claim)
        assert lab.states(tasks[2])["a"] == "enqueued"

    (claim,) = (claim for claim in lab.one.claim() if claim["name"] == "a")
    lab.one.finish(claim)
    assert lab.states(tasks[1])["a"] == "enqueued"


def test_a_permit_whose_only_heir_is_locked_is_granted_when_it_is_free(lab: Lab) -> None:
    tasks, (claim,) = run(lab, limited(lab), *"aa")

    with lab.transaction(lab.two):
        lab.two.execute("select from tasker.tasks where task_uuid = %s for update", tasks[1])
        lab.one.finish(claim)
        assert (permits(lab), waiting(lab)) == ([], [("a", 1)])
        assert due(lab.one)["next_due_ms"] <= 20

    lab.one.set_time(1)
    due(lab.one)
    assert lab.states(tasks[1])["a"] == "enqueued"
    assert repairs(lab) == {}


def test_a_cancel_of_the_next_step_that_is_taken_back_delays_it_only(lab: Lab) -> None:
    """The write that ends the permit sees a waiting step that may go: it does not wait to learn that."""
    tasks, (claim,) = run(lab, limited(lab), *"aa")

    with lab.transaction(lab.two):
        lab.two.core("cancel", {"task": tasks[1]})
        lab.one.finish(claim)
        raise psycopg.Rollback

    lab.one.set_time(1)
    due(lab.one)
    assert lab.states(tasks[1])["a"] == "enqueued"


@pytest.mark.parametrize("deed", ["cancel", "claim", "sweep"])
def test_who_holds_steps_waits_for_no_key(lab: Lab, deed: str) -> None:
    tasks = submitted(lab, limited(lab), *"aa")
    lab.one.core("pause", {"task": tasks[0], **WHY})

    with lab.transaction(lab.two):
        lab.two.execute("select pg_advisory_xact_lock(%s)", lock_of(lab, "a"))
        lab.one.execute("set lock_timeout = '1s'")
        if deed == "cancel":
            lab.one.core("cancel", {"task": tasks[0]})
        elif deed == "claim":
            assert lab.one.claim() == []
        else:
            lab.one.core("repair", {"begin": True})
    lab.one.execute("reset lock_timeout")

    lab.one.core("resume", {"task": tasks[0], **WHY})
    due(lab.one)
    lab.one.call("backlog", lab.one.args())
    due(lab.one)
    lab.one.run_all()
    assert all(lab.task(task).complete for task in tasks)


def test_an_open_transaction_of_a_client_keeps_no_key(lab: Lab) -> None:
    plan = limited(lab)
    tasks, (claim,) = run(lab, plan, *"aa")

    with lab.transaction(lab.two):
        (mine,) = lab.two.submit(plan, {"context": {"customer": "a"}}, announce=True)["created"]
        lab.one.finish(claim)
        assert lab.states(tasks[1])["a"] == "enqueued"

    due(lab.one)
    assert lab.states(mine) == {"a": "pending", "b": "pending"}
    assert waiting(lab) == [("a", 1)]


def test_a_worker_that_dies_after_the_grant_loses_no_permit(lab: Lab) -> None:
    """The commit was made and the answer lost: the step is claimed, and a sweep takes it from the dead worker."""
    tasks, (claim,) = run(lab, limited(lab), *"aaa")
    lost = lab.one.advance(ok(claim), slots=5)
    (granted,) = (claim for claim in lost["claims"] if claim["name"] == "a")

    lab.two.advance({"s": granted["step"], "t": granted["task"], "kind": "retry", "k": granted["token"], "d": 0,
                     "w": granted["worker"], "e": {"message": "lost"}, "n": {"lost": True}})  # fmt: skip
    due(lab.two)

    assert permits(lab) == [("a", 1)]
    assert waiting(lab) == [("a", 1)]
    assert sorted(lab.states(task)["a"] for task in tasks) == ["complete", "enqueued", "pending"]
