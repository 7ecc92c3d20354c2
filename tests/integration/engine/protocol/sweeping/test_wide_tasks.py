"""A wide task under way is read in slices: each costs the same however wide it is, and together they miss nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engine_fixture import Lab
from tests.support.fleets.work import work_of
from tests.support.random_plans import Spec

NARROW, WIDE = 60, 600
STEPS = 20


def roots(lab: Lab, width: int) -> str:
    """A task whose steps all run at once."""
    task = lab.submit_one(lab.plan(*(Spec(f"s{number:04}") for number in range(width)), name=f"wide{width}"))
    assert len(lab.one.claim(width)) == width
    return task


def passed(lab: Lab, function: str, args: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers of all slices."""
    answers: list[dict[str, Any]] = []
    after: dict[str, Any] = {}
    while not answers or answers[-1].get("last"):
        answers.append(lab.two.core(function, {**args, "steps": STEPS, **after}))
        after = {"after": answers[-1].get("last")}
    return answers


@pytest.mark.parametrize("function", ["sweep", "reconcile"])
def test_a_slice_of_a_task_under_way_costs_the_same_however_wide_it_is(lone_lab: Lab, function: str) -> None:
    lab = lone_lab
    args = {"worker": lab.one.worker, "held": [], "steps": STEPS}
    lab.one.start_worker(lease_ms=3_600_000)
    lab.one.execute("set enable_seqscan to off")  # as where tables are large
    works = []
    for width in (NARROW, WIDE):
        after = {"after": roots(lab, width)}
        lab.one.execute("vacuum analyze")
        works.append(work_of(lab.one, lambda more=after: lab.one.core(function, args | more)))

    narrow, wide = works

    assert 0 < wide.pages <= narrow.pages * 1.2 + 10, (narrow.pages_of, wide.pages_of)


def test_slices_of_tasks_under_way_find_each_lost_step_once(lab: Lab) -> None:
    lab.one.start_worker(lease_ms=1)
    tasks = [roots(lab, NARROW), *(roots(lab, 3) for _ in range(4))]
    lab.two.set_time(60)

    answers = passed(lab, "sweep", {"limit": 2})

    found = [orphan["s"] for answer in answers for orphan in answer.get("orphans") or ()]
    assert sorted(found) == sorted(str(row.workflow_step_uuid) for task in tasks for row in lab.steps(task).values())


def test_an_unfinished_wide_task_is_found_in_the_slice_that_it_begins_in(lab: Lab) -> None:
    lab.one.start_worker(lease_ms=3_600_000)
    tasks = [roots(lab, NARROW), roots(lab, 3)]
    lab.observer.execute(
        "update tasker.tasks set state = 'evaluating_results' where task_uuid = any (%s::uuid[])", tasks
    )
    lab.two.set_time(60)

    answers = passed(lab, "sweep", {})

    assert [task for answer in answers for task in answer.get("unfinished") or ()] == tasks
    lab.observer.execute("update tasker.tasks set state = 'steps_in_process' where task_uuid = any (%s::uuid[])", tasks)


def test_slices_of_claims_find_each_that_its_worker_does_not_know(lab: Lab) -> None:
    tasks = [roots(lab, NARROW), roots(lab, 3)]
    rows = [row for task in tasks for row in lab.steps(task).values()]
    held = [[str(row.workflow_step_uuid), row.claim_token] for row in rows[::7]]

    answers = passed(lab, "reconcile", {"worker": lab.one.worker, "held": held})

    found = [item["s"] for answer in answers for item in answer["items"]]
    assert len(answers) == -(-len(rows) // STEPS)
    assert sorted(found) == sorted({str(row.workflow_step_uuid) for row in rows} - {step for step, _ in held})
