"""A batch that changes a step and its parents at once, or names a step with another task."""

from __future__ import annotations

import pytest

from tests.support.engine_fixture import Lab, ok, operator, verdict
from tests.support.random_plans import Spec


@pytest.mark.parametrize("kind", ["resolve", "complete"])
@pytest.mark.parametrize("slots", [0, 5])
@pytest.mark.parametrize("parent_first", [True, False])
def test_a_step_that_a_person_ends_in_the_batch_of_its_parent_does_not_start(
    lab: Lab, kind: str, slots: int, parent_first: bool
) -> None:
    task, claims = lab.running(lab.chain(2))
    items = [ok(claims["s0"]), operator(kind, lab.steps(task)["s1"], r={"by": "hand"})]

    answer = lab.one.advance(*(items if parent_first else items[::-1]), slots=slots)

    assert not answer.get("claims")
    assert answer["finished"] == {task: "complete"}
    assert lab.queue_depth() == 0
    child = lab.steps(task)["s1"]
    assert (child.state, child.unmet) == ("resolved_manually" if kind == "resolve" else "complete", 0)
    assert child.claim_token == 1, "grown by the operator's action, and never back"
    assert lab.step_paths(task, "s1") == [f"pending>{child.state}"]
    assert lab.step_paths(task, "s0")[-1].endswith(">complete")


def test_the_children_of_both_start_once(lab: Lab) -> None:
    """a -> b -> c, and a -> c: one batch completes a and resolves b."""
    plan = lab.plan(Spec("a"), Spec("b", depends_on=("a",)), Spec("c", depends_on=("a", "b")))
    task, claims = lab.running(plan)

    answer = lab.one.advance(ok(claims["a"]), operator("resolve", lab.steps(task)["b"]), slots=5)

    assert [claim["name"] for claim in answer["claims"]] == ["c"]
    assert lab.steps(task)["c"].unmet == 0
    lab.one.finish(*answer["claims"])
    assert lab.task(task).state == "complete"


def test_a_step_that_is_resolved_beside_one_of_its_two_parents_still_counts_the_other(lab: Lab) -> None:
    plan = lab.plan(Spec("a"), Spec("b"), Spec("c", depends_on=("a", "b")))
    task, claims = lab.running(plan)

    lab.one.advance(ok(claims["a"]), operator("resolve", lab.steps(task)["c"]), slots=5)

    assert lab.steps(task)["c"].unmet == 1
    lab.check()
    assert lab.one.finish(claims["b"])["finished"] == {task: "complete"}
    assert lab.steps(task)["c"].unmet == 0


@pytest.mark.parametrize("wait", [True, False])
def test_a_result_under_another_task_is_refused_and_kept(lab: Lab, wait: bool) -> None:
    """Its own task is not locked: two such writes would judge the step at the same time."""
    plan = lab.chain(2)
    task, other = lab.submit(plan, {}, {})
    claims = {claim["task"]: claim for claim in lab.one.claim()}

    answer = lab.one.advance({**ok(claims[task]), "t": other}, ok(claims[other]), wait=wait)

    assert verdict(answer, claims[task]) == "stale"
    assert verdict(answer, claims[other]) == "accepted"
    assert lab.states(task)["s0"] == "in_progress"
    assert [(row.verdict, row.detail["result"]) for row in lab.refused(other)] == [("stale", {"by": "s0"})]
    lab.one.finish(claims[task])


def test_a_result_under_another_task_alone_is_refused_as_well(lab: Lab) -> None:
    task, other = lab.submit(lab.chain(1), {}, {})
    claims = {claim["task"]: claim for claim in lab.one.claim()}

    answer = lab.one.advance({**ok(claims[task]), "t": other})

    assert verdict(answer, claims[task]) == "stale"
    assert lab.states(task) == {"s0": "in_progress"}
    lab.one.finish(*claims.values())
