"""Steps that end in the write that ends their last parent, without a claim (kind `ahead`): only as they could have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engine_fixture import Answer, Item, Lab, fail, new_step, ok
from tests.support.random_plans import DECISION, Spec

ROW = "pending>enqueued>in_progress>enqueued_for_orchestration>complete"
B = Spec("b", depends_on=("a",))


def ahead(lab: Lab, task: str, name: str, **more: Any) -> Item:
    row = lab.steps(task)[name]
    return {"s": str(row.workflow_step_uuid), "t": task, "kind": "ahead", "r": {"of": name}, **more}


def write(lab: Lab, *items: Item, **more: Any) -> Answer:
    return lab.one.advance(*items, slots=5, **more)


def is_refused(lab: Lab, task: str, answer: Answer, *names: str) -> bool:
    """Whether these steps were not ended, and nothing is stored of what was brought."""
    rows = [lab.steps(task)[name] for name in names]
    refused = [answer["verdicts"].get(str(row.workflow_step_uuid)) for row in rows]
    assert lab.refused(task) == []
    return set(refused) <= {"stale", "cancelled"} and not {"complete"} & {row.state for row in rows}


def test_step_ahead_leaves_the_row_and_the_history_of_one_that_was_claimed(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), B, Spec("c", depends_on=("b",))))
    usual, usual_claims = lab.running(lab.plan(Spec("a"), B, Spec("c", depends_on=("b",)), name="usual"))
    (handed,) = write(lab, ok(usual_claims["a"]))["claims"]
    write(lab, ok(handed, {"of": "b"}))

    answer = write(lab, ok(claims["a"]), ahead(lab, task, "b", ms=3))

    assert [claim["name"] for claim in answer["claims"]] == ["c"]
    assert lab.step_paths(task, "b")[-1] == ROW
    columns = (
        "state",
        "unmet",
        "attempts",
        "claim_token",
        "sort_key",
        "due_at",
        "deadline_at",
        "hint_count",
        "worker_uuid",
    )
    ours, theirs = lab.steps(task)["b"], lab.steps(usual)["b"]
    assert [getattr(ours, name) for name in columns] == [getattr(theirs, name) for name in columns]
    assert ours.started_at is not None
    results = "select result from tasker.step_results where workflow_step_uuid = %s"
    assert lab.observer.rows(results, ours.workflow_step_uuid) == lab.observer.rows(results, theirs.workflow_step_uuid)
    counted = [(row.done, row.active, row.total, row.state) for row in (lab.task(task), lab.task(usual))]
    assert counted[0] == counted[1]


def test_steps_ahead_of_each_other_end_in_one_write(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(4))
    answer = write(lab, ok(claims["s0"]), *(ahead(lab, task, name) for name in ("s3", "s1", "s2")))
    assert set(answer["finished"].values()) == {"complete"}
    assert lab.step_paths(task, "s3")[-1] == ROW


@pytest.mark.parametrize("parent", ["fails", "is not in the write", "has an old token"])
def test_step_ahead_is_refused_where_its_parent_does_not_end_well(lab: Lab, parent: str) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), Spec("other"), B))
    old = {**claims["a"], "token": 0}
    of_parent = {"fails": fail(claims["a"]), "is not in the write": ok(claims["other"]), "has an old token": ok(old)}
    answer = write(lab, of_parent[parent], ahead(lab, task, "b"))
    row = lab.steps(task)["b"]
    assert (row.state, row.claim_token, row.unmet) == ("pending", 0, 1)
    assert answer["verdicts"][str(row.workflow_step_uuid)] == "stale"


def test_step_ahead_needs_all_its_parents_in_the_write(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), Spec("other"), Spec("b", depends_on=("a", "other"))))
    assert is_refused(lab, task, write(lab, ok(claims["a"]), ahead(lab, task, "b")), "b")
    write(lab, ok(claims["other"]), ahead(lab, task, "b"))
    assert lab.states(task)["b"] == "complete"


def test_refused_step_is_handed_off_by_the_same_write_and_those_ahead_of_it_stay(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), Spec("b", depends_on=("a",)), Spec("c", depends_on=("b",))))
    lab.observer.execute("update tasker.workflow_steps set claim_token = 1 where task_uuid = %s and name = 'b'", task)
    answer = write(lab, ok(claims["a"]), ahead(lab, task, "b"), ahead(lab, task, "c"))
    assert is_refused(lab, task, answer, "b", "c")
    assert [(claim["name"], claim["token"]) for claim in answer["claims"]] == [("b", 2)]


def test_paused_step_is_not_ended_ahead(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), B))
    lab.one.core("pause", {"namespace": lab.namespace, "step": "b", "template": "flow", "actor": "x", "reason": ""})
    assert is_refused(lab, task, write(lab, ok(claims["a"]), ahead(lab, task, "b")), "b")
    assert lab.task(task).held == 1


def test_step_with_a_time_is_not_ended_ahead(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), Spec("b", depends_on=("a",), delay=60.0)))
    assert is_refused(lab, task, write(lab, ok(claims["a"]), ahead(lab, task, "b")), "b")
    assert lab.task(task).held == 1


def test_nothing_is_ended_ahead_in_a_cancelled_task(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), B))
    lab.one.core("cancel", {"task": task, "reason": "enough", "actor": "me"})
    answer = write(lab, ok(claims["a"]), ahead(lab, task, "b"))
    assert set(answer["verdicts"].values()) == {"cancelled"}
    assert set(lab.states(task).values()) == {"cancelled"}


def test_write_whose_answer_was_lost_changes_nothing_when_it_is_repeated(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), B))
    items = ok(claims["a"]), ahead(lab, task, "b")
    write(lab, *items)
    before = lab.steps(task), lab.task(task)
    assert sorted(write(lab, *items)["verdicts"].values()) == ["already_accepted", "stale"]
    assert (lab.steps(task), lab.task(task)) == before


def test_step_ahead_of_a_locked_task_is_busy_with_its_parent(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), B))
    items = ok(claims["a"]), ahead(lab, task, "b")
    with lab.transaction(lab.two):
        lab.two.execute("select from tasker.tasks where task_uuid = %s for update", task)
        assert set(write(lab, *items, wait=False)["verdicts"].values()) == {"busy"}
    assert write(lab, *items)["finished"] == {task: "complete"}


@pytest.mark.parametrize(("versions", "ended"), [((0, 1), ["c", "d"]), ((0, 0), ["c"]), ((1, 2), []), ((1, 1), [])])
def test_expansions_ahead_are_planned_for_the_graph_behind_each_other(
    lab: Lab, versions: tuple[int, int], ended: list[str]
) -> None:
    names = {"c": "c1", "d": "d1"}
    decisions = [Spec(name, DECISION, ("a",)) for name in names]
    plan = lab.plan(Spec("a"), *decisions, *(Spec(below, depends_on=(name,)) for name, below in names.items()))
    task, claims = lab.running(plan)
    items = [
        ahead(lab, task, name, gv=version, x=[new_step(plan, names[name], name)])
        for name, version in zip(names, versions, strict=True)
    ]
    answer = write(lab, ok(claims["a"]), *items)
    assert [name for name in names if lab.states(task)[name] == "complete"] == ended
    assert lab.task(task).graph_version == len(ended)
    assert sorted(claim["name"] for claim in answer["claims"]) == sorted(
        names[name] if name in ended else name for name in names
    )
