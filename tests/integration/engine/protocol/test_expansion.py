"""Rule 8: an expansion is planned before the write, and written only onto the graph it was planned for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.engine.protocol.conftest import Orchestra, result_of
from tests.support.engine_fixture import Item, Lab, new_step, ok, operator, verdict
from tests.support.random_plans import Spec, StepType, build_plan, create_steps

DECISION, DEFERRED = StepType.DECISION, StepType.DEFERRED


def two_decisions(lab: Lab) -> Any:
    """Two decisions side by side, one branch below each, and a convergence of both branches."""
    return lab.plan(
        Spec("left", DECISION),
        Spec("right", DECISION),
        Spec("a", depends_on=("left",)),
        Spec("b", depends_on=("right",)),
        Spec("join", DEFERRED, ("a", "b")),
    )


def version(lab: Lab, task: str) -> int:
    return int(lab.one.core("graph", {"tasks": [task]})[task]["version"])


def expanding(claim: Item, graph_version: int, *steps: Item) -> Item:
    return ok(claim, gv=graph_version, x=list(steps)) if steps else ok(claim, gv=graph_version)


def test_completing_a_decision_and_creating_its_steps_is_one_change(lab: Lab) -> None:
    plan = two_decisions(lab)
    task, claims = lab.running(plan)

    with lab.transaction(lab.one):
        lab.one.advance(expanding(claims["left"], 0, new_step(plan, "a", "left")))
        assert lab.states(task) == {"left": "in_progress", "right": "in_progress"}, "nothing is seen before the commit"
    assert lab.states(task) == {"left": "complete", "right": "in_progress", "a": "enqueued"}
    assert lab.task(task).total == 3


def test_an_expansion_that_cannot_be_written_changes_nothing(lab: Lab) -> None:
    """The result can be brought again: the step is still running under its token."""
    plan = two_decisions(lab)
    task, claims = lab.running(plan)
    before = (lab.task(task), lab.steps(task))
    twice = [new_step(plan, "a", "left"), new_step(plan, "a", "left")]

    with pytest.raises(Exception, match="workflow_steps_of_task"):
        lab.one.advance(expanding(claims["left"], 0, *twice))

    assert (lab.task(task), lab.steps(task)) == before
    lab.one.advance(expanding(claims["left"], 0, new_step(plan, "a", "left")))
    assert lab.states(task)["a"] == "enqueued"


def test_a_plan_for_an_older_graph_is_answered_replan_and_nothing_else_of_the_batch_waits(lab: Lab) -> None:
    plan = two_decisions(lab)
    task, claims = lab.running(plan)
    other, others = lab.running(lab.chain(1))
    old = version(lab, task)
    lab.one.advance(expanding(claims["left"], old, new_step(plan, "a", "left")))

    stale = expanding(claims["right"], old, new_step(plan, "b", "right"))
    answer = lab.two.advance(stale, ok(others["s0"]))

    assert verdict(answer, claims["right"]) == "replan"
    assert answer["finished"] == {other: "complete"}
    assert lab.states(task) == {"left": "complete", "right": "in_progress", "a": "enqueued"}
    assert not lab.refused(task), "the result is brought again"

    lab.two.advance(expanding(claims["right"], version(lab, task), new_step(plan, "b", "right")))
    assert lab.states(task)["b"] == "enqueued"


def test_the_second_of_two_concurrent_expansions_waits_and_is_answered_replan(lab: Lab) -> None:
    plan = two_decisions(lab)
    task, claims = lab.running(plan)

    with lab.transaction(lab.one):
        lab.one.advance(expanding(claims["left"], 0, new_step(plan, "a", "left")))
        second = lab.later(lab.two.advance, expanding(claims["right"], 0, new_step(plan, "b", "right")))
        lab.waits(second, lab.two, on=lab.one)

    assert verdict(second.result(timeout=30), claims["right"]) == "replan"
    assert "b" not in lab.states(task)


def test_a_decision_for_no_branches_changes_the_graph_too(lab: Lab) -> None:
    """Whoever planned while it was open left the convergence to it."""
    plan = two_decisions(lab)
    task, claims = lab.running(plan)
    old = version(lab, task)

    lab.one.advance(expanding(claims["right"], old))
    answer = lab.two.advance(expanding(claims["left"], old, new_step(plan, "a", "left")))

    assert verdict(answer, claims["left"]) == "replan"
    assert version(lab, task) == old + 1


def test_the_same_expansion_brought_twice_creates_its_steps_once(lab: Lab) -> None:
    plan = two_decisions(lab)
    task, claims = lab.running(plan)
    item = expanding(claims["left"], 0, new_step(plan, "a", "left"))
    lab.one.advance(item)

    assert verdict(lab.one.advance(item), claims["left"]) == "already_accepted"
    assert (sorted(lab.states(task)), version(lab, task)) == (["a", "left", "right"], 1)


def test_sql_counts_the_unmet_parents_of_a_new_step(lab: Lab) -> None:
    """Of three parents one is complete, one completes with this write and one is created by it."""
    plan = lab.plan(
        Spec("done"),
        Spec("choice", DECISION),
        Spec("a", depends_on=("choice",)),
        Spec("join", DEFERRED, ("done", "choice", "a")),
    )
    task, claims = lab.running(plan)
    lab.one.finish(claims["done"])

    created = [new_step(plan, "a", "choice"), new_step(plan, "join", "done", "choice", "a")]
    lab.one.advance(expanding(claims["choice"], 0, *created))

    steps = lab.steps(task)
    assert (steps["join"].unmet, steps["join"].state) == (1, "pending")
    assert (steps["a"].unmet, steps["a"].state) == (0, "enqueued")


def test_a_parent_that_completes_while_the_expansion_waits_is_not_counted(lab: Lab) -> None:
    plan = lab.plan(
        Spec("side"), Spec("choice", DECISION), Spec("a", depends_on=("choice",)), Spec("join", DEFERRED, ("side", "a"))
    )
    task, claims = lab.running(plan)

    with lab.transaction(lab.one):
        lab.one.finish(claims["side"])
        created = [new_step(plan, "a", "choice"), new_step(plan, "join", "side", "a")]
        second = lab.later(lab.two.advance, expanding(claims["choice"], 0, *created))
        lab.waits(second, lab.two, on=lab.one)
    second.result(timeout=30)

    assert lab.steps(task)["join"].unmet == 1


def test_a_task_is_never_seen_complete_between_a_decision_and_its_steps(lab: Lab) -> None:
    """Its only step completes and creates the next one: the counters pass through no state of being done."""
    plan = lab.plan(Spec("choice", DECISION), Spec("a", depends_on=("choice",)))
    task, claims = lab.running(plan)

    answer = lab.one.advance(expanding(claims["choice"], 0, new_step(plan, "a", "choice")))

    assert not answer.get("finished")
    assert not any("complete" in path for path in lab.task_paths(task))
    lab.one.run_all()
    assert lab.task(task).state == "complete"


def test_a_decision_in_error_is_open_to_the_planner(lab: Lab) -> None:
    """A person may still make it decide, so a convergence below it must wait."""
    plan = two_decisions(lab)
    task, claims = lab.running(plan)
    lab.one.advance(
        {**ok(claims["left"]), "kind": "fail", "e": {"message": "no", "error_type": "X", "retryable": False}}
    )

    steps = lab.one.core("graph", {"tasks": [task]})[task]["steps"]

    assert {name: is_open for name, _, is_open in steps} == {"left": True, "right": True}
    lab.one.advance(operator("resolve", lab.steps(task)["left"], gv=0))
    assert {name: is_open for name, _, is_open in lab.one.core("graph", {"tasks": [task]})[task]["steps"]} == {
        "left": False,
        "right": True,
    }


def test_batch_workers_carry_their_inputs_and_the_edges_say_what_they_are(lab: Lab) -> None:
    plan = build_plan(
        Spec("cut", StepType.BATCHABLE),
        Spec("work", StepType.BATCH_WORKER, ("cut",)),
        Spec("sum", DEFERRED, ("work",)),
        namespace=lab.namespace,
        name="batches",
    )
    task, claims = lab.running(plan)
    workers = [
        {**new_step(plan, "work", "cut"), "name": f"work_{i}", "inputs": {"n": i}, "batch": True} for i in range(3)
    ]
    lab.one.advance(expanding(claims["cut"], 0, *workers, new_step(plan, "sum", *(w["name"] for w in workers))))

    claimed = lab.one.claim()
    assert [claim["inputs"] for claim in claimed] == [{"n": 0}, {"n": 1}, {"n": 2}]
    edges = lab.observer.rows(
        "select name, count(*) from tasker.workflow_step_edges where task_uuid = %s group by name order by name", task
    )
    assert [tuple(row) for row in edges] == [("batch_convergence_dependency", 3), ("batch_dependency", 3)]
    with lab.one.connection.transaction(force_rollback=True):
        lab.one.execute("delete from tasker.dynamic_edges where task_uuid = %s and name like '%%convergence%%'", task)
        broken = lab.one.rows("select rule, detail from tasker.violations_v1('{}')")
    assert [tuple(row) for row in broken] == [("unmet differs from the parents", "sum: row 3, counted 0")]
    lab.one.finish(*claimed)
    lab.one.run_all()
    assert lab.task(task).state == "complete"


def test_a_new_step_does_not_wait_for_a_parent_that_a_person_resolved(lab: Lab) -> None:
    plan = lab.plan(Spec("choice", DECISION), Spec("other"), Spec("a", depends_on=("choice", "other")))
    task, claims = lab.running(plan)
    lab.one.advance(operator("resolve", lab.steps(task)["other"]))

    lab.one.advance(expanding(claims["choice"], 0, new_step(plan, "a", "choice", "other")))

    assert (lab.states(task)["a"], lab.steps(task)["a"].unmet) == ("enqueued", 0)
    assert lab.one.run_all() == 1
    assert lab.task(task).state == "complete"


async def test_decision_beyond_the_steps_that_a_task_can_have_fails_with_the_limit(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    task, claims = lab.running(plan := two_decisions(lab))
    lab.observer.execute("update tasker.tasks set next_seq = 16777215 where task_uuid = %s", task)

    await orchestra.process(result_of(plan, claims["left"], create_steps("a")))
    await orchestra.process(result_of(plan, claims["right"], create_steps("b")))

    assert lab.states(task) | {"a": "-"} == {"left": "complete", "right": "error", "a": "-"}
    error = lab.observer.value("select error from tasker.step_failures where task_uuid = %s", task)
    assert (error["error_type"], error["retryable"]) == ("not_storable", False)
    assert "a task has at most 16777215 steps" in error["message"]
