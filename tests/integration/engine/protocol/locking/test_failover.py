"""Rule 2 after a failover that lost a commit: two workers hold the same token, and only one of them has the claim."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from tests.support.engine_fixture import Item, Lab, Session, change, fail, ok, retry, verdict
from tests.support.random_plans import Spec


def lost_claim(lab: Lab, session: Session) -> Item:
    """A claim that was answered and whose commit the new primary has never seen."""
    claims: list[Item] = []
    with lab.transaction(session):
        claims += session.claim()
        raise psycopg.Rollback
    (claim,) = claims
    return claim


def twins(lab: Lab, plan_length: int = 1) -> tuple[str, Item, Item]:
    """A task whose first step two workers believe in: the one whose claim was lost, and the one that has it."""
    task = lab.submit_one(lab.chain(plan_length))
    lost = lost_claim(lab, lab.one)
    (real,) = lab.two.claim()
    assert (real["step"], real["token"]) == (lost["step"], lost["token"]), "the token has begun anew"
    return task, lost, real


@pytest.mark.parametrize("item", [ok, retry, fail, lambda claim: change("release", claim, n={"reason": "stop"})])
@pytest.mark.parametrize("signed", [True, False])
def test_only_the_worker_that_has_the_claim_ends_it(lab: Lab, item: Callable[[Item], Item], signed: bool) -> None:
    """Who brings a change is taken for its holder, unless it says whose claim it is."""
    task, lost, real = twins(lab)
    brought = item(lost)
    if not signed:
        del brought["w"]

    assert verdict(lab.one.advance(brought), lost) == "stale"
    assert lab.states(task) == {"s0": "in_progress"}

    assert verdict(lab.two.finish(real), real) == "accepted"
    stored = lab.observer.rows("select result from tasker.step_results where task_uuid = %s", task)
    assert [row.result for row in stored] == [{"by": "s0"}]


@pytest.mark.parametrize("item", [ok, fail])
def test_a_result_after_the_other_s_is_not_taken_for_the_same_one(lab: Lab, item: Callable[[Item], Item]) -> None:
    task, lost, real = twins(lab)
    lab.two.advance(item(real))

    answer = lab.one.advance(ok(lost, {"mine": True}))

    assert verdict(answer, lost) == "stale", "or the worker would hand its own result to what runs after it"
    assert [row.detail["result"] for row in lab.refused(task)] == [{"mine": True}]
    assert verdict(lab.two.advance(item(real)), real) == "already_accepted"


def test_only_the_worker_that_has_the_claim_parks_its_result(lab: Lab) -> None:
    task, lost, real = twins(lab)

    refused = lab.one.core("park", {"worker": lab.one.worker, "items": [ok(lost, {"mine": True})]})
    assert verdict(refused, lost) == "stale"
    assert lab.states(task) == {"s0": "in_progress"}
    lab.two.core("park", {"worker": lab.two.worker, "items": [ok(real)]})
    late = lab.one.core("park", {"worker": lab.one.worker, "items": [ok(lost, {"mine": True})]})
    assert verdict(late, lost) == "stale"
    (parked,) = lab.one.core("parked", {"steps": [real["step"]]})["items"]
    assert parked["worker"] == lab.two.worker
    stored = "select result from tasker.step_results where workflow_step_uuid = %s"
    assert lab.observer.value(stored, real["step"]) == {"by": "s0"}

    lab.one.advance({"s": parked["step"], "t": task, "k": parked["token"], "w": parked["worker"], "kind": "ok"})
    assert lab.states(task) == {"s0": "complete"}


@pytest.mark.parametrize("function", ["begin", "checkpoint"])
def test_only_the_worker_that_has_the_claim_moves_its_deadline(lab: Lab, function: str) -> None:
    task, lost, real = twins(lab)
    before = lab.steps(task)["s0"]
    args = {"step": lost["step"], "token": lost["token"], "cursor": 9, "timeout_ms": 10**6}

    assert lab.one.core(function, args) == {"lost": True}
    assert lab.steps(task)["s0"] == before
    assert lab.two.core(function, args) != {"lost": True}
    lab.two.finish(real)


def test_the_beat_of_a_worker_without_the_claim_tells_it_so(lab: Lab) -> None:
    lab.one.start_worker()
    lab.two.start_worker()
    _, lost, real = twins(lab)
    held = [[lost["step"], lost["token"]]]

    def beat(session: Session) -> Item:
        return session.core("worker", {"action": "beat", "worker": session.worker, "lease_ms": 30_000, "held": held})

    assert beat(lab.one)["lost"] == [lost["step"]]
    assert "lost" not in beat(lab.two)
    lab.two.finish(real)


def test_a_sweep_that_saw_the_lost_claim_takes_nothing_from_who_has_it(lab: Lab) -> None:
    task, _, real = twins(lab)
    note = {"n": {"lost": True}}
    orphan = {"s": real["step"], "t": task, "k": real["token"], "w": lab.one.worker, "kind": "retry", "d": 0, **note}

    assert verdict(lab.observer.advance(orphan), real) == "stale"
    assert verdict(lab.observer.advance({**orphan, "w": lab.two.worker}), real) == "accepted"


def test_a_step_that_waits_for_its_next_attempt_is_nobody_s(lab: Lab) -> None:
    """A worker that had it before is not shown as the one that runs it, nor since when."""
    task, claims = lab.running(lab.plan(Spec("a")))
    lab.one.advance(retry(claims["a"], delay_ms=0))
    lab.one.call("due", lab.one.args())

    step = lab.steps(task)["a"]

    assert (step.state, step.worker_uuid, step.started_at, step.deadline_at, step.due_at) == (
        "enqueued", None, None, None, None,
    )  # fmt: skip
