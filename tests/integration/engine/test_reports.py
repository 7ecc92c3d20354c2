"""A report tells all that the rows of a step hold, however the step came to its end."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.services.tasks.read import REPORT
from tasker.views.tasks import StepReport, stored_report
from tests.support.engine_fixture import FAILURE, Item, Lab, fail, ok, operator, retry
from tests.support.random_plans import DECISION, DEFERRED, Spec


def claimed(lab: Lab, task: str) -> Item:
    (found,) = [claim for claim in lab.one.claim() if claim["task"] == task]
    return found


def at_once(lab: Lab, task: str) -> None:
    lab.one.advance(ok(claimed(lab, task)))


def again(lab: Lab, task: str) -> None:
    lab.one.advance(retry(claimed(lab, task), delay_ms=0))
    lab.one.call("due", lab.one.args(limit=1))
    lab.one.advance(ok(claimed(lab, task)))


def failed(lab: Lab, task: str) -> None:
    lab.one.advance(fail(claimed(lab, task)))


def failed_and_completed_by_hand(lab: Lab, task: str) -> None:
    failed(lab, task)
    lab.one.advance(operator("complete", lab.steps(task)["only"], r={}))


def never_begun_and_completed_by_hand(lab: Lab, task: str) -> None:
    lab.one.advance(operator("fail", lab.steps(task)["only"], e=FAILURE))
    lab.one.advance(operator("complete", lab.steps(task)["only"], r={}))


def never_begun_and_then_reset(lab: Lab, task: str) -> None:
    lab.one.advance(operator("fail", lab.steps(task)["only"], e=FAILURE))
    lab.one.advance(operator("reset", lab.steps(task)["only"]))
    lab.one.advance(ok(claimed(lab, task)))


def report(lab: Lab, task: str) -> dict[str, StepReport]:
    row = lab.one.connection.execute(REPORT, {"task": task}).fetchone()
    assert row is not None
    return dict(stored_report(row[0]).steps)


@pytest.mark.parametrize(
    ("comes", "failures", "duration"),
    [
        (at_once, 0, 5),
        (again, 1, 5),
        (failed, 1, 5),
        (failed_and_completed_by_hand, 1, 5),
        (never_begun_and_completed_by_hand, 1, None),
        (never_begun_and_then_reset, 1, 5),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_all_failures_of_a_step_are_told_and_how_long_its_last_attempt_took(
    lab: Lab, comes: Any, failures: int, duration: int | None
) -> None:
    task = lab.submit_one(lab.plan(Spec("only")))
    comes(lab, task)
    step = report(lab, task)["only"]
    stored = lab.observer.value("select count(*) from tasker.step_failures where task_uuid = %s", task)
    assert (len(step.failures), step.duration_ms) == (stored, duration)
    assert stored == failures


def test_steps_say_what_they_depend_on_in_the_order_of_its_creation(lab: Lab) -> None:
    """Static ones by the template, the others by what was created."""
    plan = lab.plan(
        Spec("z"),
        Spec("a", depends_on=("z",)),
        Spec("choose", DECISION, ("a", "z")),
        Spec("y", depends_on=("choose", "a")),
        Spec("left out", depends_on=("choose",)),
        Spec("join", DEFERRED, ("left out", "y", "z")),
    )
    task, claims = lab.running(plan)
    lab.one.advance(ok(claims["z"]))
    lab.one.advance(ok(claimed(lab, task)))
    new = [
        {"name": "y", "ordinal": 3, "parents": ["choose", "a"]},
        {"name": "join", "ordinal": 5, "parents": ["y", "z"]},
    ]
    lab.one.advance(ok(claimed(lab, task), x=new, gv=0))
    assert {name: [*step.depends_on] for name, step in report(lab, task).items()} == {
        "z": [],
        "a": ["z"],
        "choose": ["z", "a"],
        "y": ["a", "choose"],
        "join": ["z", "y"],
    }
