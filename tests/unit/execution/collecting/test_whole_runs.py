"""What is known of a task that grew here: all of its steps, in the order of their creation, or nothing."""

from __future__ import annotations

from typing import Any

from tasker.engine.answers import SubmitAnswer
from tasker.engine.changes import ExpansionRecord
from tasker.engine.exchange import Result
from tasker.execution.fast.local_tasks import LocalTask, LocalTaskTracker
from tasker.handlers.claims import Claim, Success
from tasker.json_values import JsonText
from tasker.template.plan import Plan
from tasker.views.tasks import TaskReport
from tests.support.random_plans import BESIDE_EACH_OTHER

TASK = "task"
NOW = "2026-01-01T00:00:00+00:00"


class Submits:
    """In place of what creates the task."""

    async def start(self, *_: Any) -> SubmitAnswer:
        return SubmitAnswer(created=frozenset({TASK}), at=NOW)


def new(plan: Plan, name: str, *parents: str) -> dict[str, Any]:
    return {"name": name, "ordinal": plan.by_name[name].ordinal, "parents": parents}


async def report(plan: Plan, growths: dict[str, ExpansionRecord], *more: str) -> TaskReport | None:
    """Of a task whose steps complete in this order."""
    submits: Any = Submits()
    run = LocalTask(submits, LocalTaskTracker())
    item = {"id": TASK, "context": JsonText("{}"), "tags": [], "initiator": "me", "priority": 0}
    await run.start(lambda *_: submits.start(), 1, {"tasks": [item]})
    for name in (*(step.name for step in plan.steps if step.static), *more):
        claim = Claim(name, TASK, name, 1, plan.by_name[name].ordinal, plan.namespace, 1, 1, 3, "correlation")
        run.completed(Result(claim, plan, 1, Success(JsonText("{}"))), growths.get(name))
    run.ended("complete", NOW)
    return run.report(TASK)


async def test_steps_are_listed_in_the_order_of_their_creation() -> None:
    plan = BESIDE_EACH_OTHER
    later = ExpansionRecord(1, [new(plan, "a", "left"), new(plan, "join", "a", "b")])
    known = await report(
        plan, {"left": later, "right": ExpansionRecord(0, [new(plan, "b", "right")])}, "a", "b", "join"
    )
    assert known is not None
    assert {name: [*step.depends_on] for name, step in known.steps.items()} == {
        "left": [],
        "right": [],
        "a": ["left"],
        "b": ["right"],
        "join": ["b", "a"],
    }


async def test_what_a_task_consists_of_is_not_known_where_a_decision_was_not_seen() -> None:
    assert await report(BESIDE_EACH_OTHER, {"left": ExpansionRecord(0, ())}) is None
    known = await report(BESIDE_EACH_OTHER, {"left": ExpansionRecord(0, ()), "right": ExpansionRecord(1, ())})
    assert known is not None
    assert [*known.steps] == ["left", "right"]


async def test_a_task_of_which_a_new_step_ran_elsewhere_is_not_known() -> None:
    growths = {"left": ExpansionRecord(0, [new(BESIDE_EACH_OTHER, "a", "left")]), "right": ExpansionRecord(1, ())}
    assert await report(BESIDE_EACH_OTHER, growths) is None
    assert await report(BESIDE_EACH_OTHER, growths, "a") is not None


async def test_a_task_whose_decision_was_lost_and_came_out_otherwise_elsewhere_is_not_known() -> None:
    """What the former one had created does not count for what there is now."""
    growths = {"left": ExpansionRecord(0, [new(BESIDE_EACH_OTHER, "b", "left")]), "right": ExpansionRecord(1, ())}
    assert await report(BESIDE_EACH_OTHER, growths, "a") is None
    assert await report(BESIDE_EACH_OTHER, growths, "a", "b") is not None
