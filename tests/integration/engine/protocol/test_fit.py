"""Rule 16: a caller gets what it can run: its slots, its namespaces, what it can resolve."""

from __future__ import annotations

import pytest

from tests.support.engine_fixture import Item, Lab, change, ok
from tests.support.random_plans import Spec


def key(lab: Lab, task: str, name: str) -> str:
    row = lab.steps(task)[name]
    return f"{row.template_id}:{row.ordinal}"


@pytest.mark.parametrize("slots", [0, 1, 3])
def test_a_claim_takes_no_more_than_the_free_slots(lab: Lab, slots: int) -> None:
    lab.submit(lab.chain(1), *({} for _ in range(5)))

    assert len(lab.one.claim(slots)) == slots
    assert lab.queue_depth() == 5 - slots


def test_a_caller_without_slots_is_handed_nothing(lab: Lab) -> None:
    task, claims = lab.running(lab.chain())

    answer = lab.one.finish(claims["s0"], slots=0)

    assert not answer.get("claims")
    assert lab.states(task)["s1"] == "enqueued"


def test_a_caller_is_handed_nothing_of_a_namespace_that_it_does_not_serve(lab: Lab) -> None:
    task, claims = lab.running(lab.chain())

    answer = lab.one.finish(claims["s0"], slots=5, namespace_ids=[lab.namespace_id + 1])

    assert not answer.get("claims")
    assert (lab.states(task)["s1"], lab.queue_depth()) == ("enqueued", 1)


def test_a_caller_is_handed_nothing_that_it_cannot_resolve(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), Spec("mine", depends_on=("a",)), Spec("theirs", depends_on=("a",))))

    answer = lab.one.advance(ok(claims["a"]), slots=5, unserved=[key(lab, task, "theirs")])

    assert [claim["name"] for claim in answer["claims"]] == ["mine"]
    assert lab.states(task)["theirs"] == "enqueued"


def test_a_step_that_this_worker_cannot_resolve_is_put_back_for_another_one(lab: Lab) -> None:
    task = lab.submit_one(lab.plan(Spec("mine"), Spec("theirs")))
    unserved = {"unserved": [key(lab, task, "theirs")]}

    first = lab.one.claim_answer(**unserved)

    assert [claim["name"] for claim in first["claims"]] == ["mine"]
    theirs = lab.steps(task)["theirs"]
    assert (theirs.state, theirs.attempts, theirs.claim_token) == ("enqueued", 0, 0), "nothing happened to it"
    assert lab.queue_depth() == 1
    assert not lab.two.claim(), "the hint comes back after a moment"
    lab.observer.execute(f"update pgmq.q_worker_{lab.namespace}_queue set vt = clock_timestamp()")
    assert [claim["name"] for claim in lab.two.claim()] == ["theirs"]


def test_each_namespace_that_is_asked_gets_its_share_of_the_slots(lab: Lab) -> None:
    other = Lab(lab.url)
    try:
        lab.submit(lab.chain(1), *({} for _ in range(8)))
        other.submit(other.chain(1), *({} for _ in range(8)))

        both = {"namespaces": [lab.namespace, other.namespace], "namespace_ids": [lab.namespace_id, other.namespace_id]}
        claims = lab.one.claim(6, **both)

        assert [_namespace(lab, claim) for claim in claims].count(lab.namespace_id) == 3
    finally:
        other.close()


def _namespace(lab: Lab, claim: Item) -> int:
    query = "select namespace_id from tasker.workflow_steps where workflow_step_uuid = %s"
    return int(lab.observer.value(query, claim["step"]))


def test_a_step_s_deadline_is_its_timeout_and_the_grace(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    row = lab.steps(task)["s0"]

    assert (row.deadline_at - row.started_at).total_seconds() == 40, "30 s where the template sets none, 10 s of grace"
    lab.one.finish(claims["s0"])


def test_the_deadline_of_a_step_that_is_handed_over_is_the_same(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(2))
    (handed,) = lab.one.finish(claims["s0"], slots=1)["claims"]
    row = lab.steps(task)["s1"]

    assert (row.deadline_at - row.started_at).total_seconds() == 40
    lab.one.finish(handed)


def test_a_step_that_a_caller_gives_back_is_not_handed_to_it_again(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))

    answer = lab.one.advance(change("release", claims["s0"]), slots=5)

    assert not answer.get("claims")
    assert lab.states(task) == {"s0": "enqueued"}
    assert lab.queue_depth() == 1
