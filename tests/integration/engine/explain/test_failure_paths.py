"""What is said about steps that failed or were skipped while their task goes on."""

from __future__ import annotations

from datetime import UTC

from tasker.template import compile_text
from tests.integration.engine.explain.conftest import Told
from tests.support.engine_fixture import fail, new_step, ok, operator


def test_a_failure_after_which_the_task_goes_on_says_what_is_skipped(told: Told) -> None:
    text = f"""
name: flow
namespace: {told.lab.namespace}
version: 1.0.0
steps:
  - {{name: pay, handler: h, on_failure: {{run: refund}}}}
  - {{name: ship, handler: h, dependencies: [pay]}}
  - {{name: beside, handler: h}}
  - {{name: refund, handler: h}}
"""
    (plan,) = compile_text(text).plans
    task, claims = told.lab.running(plan)

    assert told.one(task, "refund").sentence(UTC) == "not created: it runs only if pay fails"
    skip = operator("skip", told.lab.steps(task)["ship"], st="s", n={"reason": "upstream_failed", "because": "pay"})
    told.lab.one.advance(fail(claims["pay"], gv=0, st="h", x=[new_step(plan, "refund", "pay")]), skip, atomic=True)

    assert told.one(task, "pay").sentence(UTC) == (
        "failed in attempt 1 of 3: TestError: it broke; the task went on without it"
    )
    assert told.one(task, "ship").sentence(UTC) == (
        "skipped since 12:00:00: pay failed, and `on_failure` skips what depends on it"
    )
    assert {"pay", "ship"}.isdisjoint(told.sentences(task)), "they do not keep the task from its end"


def test_steps_of_a_task_whose_effects_are_undone_need_nobody(told: Told) -> None:
    text = f"""
name: saga
namespace: {told.lab.namespace}
version: 1.0.0
on_failure: compensate
steps:
  - {{name: book, handler: h, compensate: h}}
  - {{name: pay, handler: h}}
  - {{name: ship, handler: h, dependencies: [pay]}}
"""
    (plan,) = compile_text(text).plans
    task, claims = told.lab.running(plan)
    assert told.sentence(task, "book.undo") == (
        "not created: a step of `finally`, or a compensation, which runs when the other steps have come to rest"
    )

    told.lab.one.advance(ok(claims["book"]), fail(claims["pay"]))

    gone = "does not run in this task any more: its effects are undone, or are being undone"
    assert [told.sentence(task, step) for step in ("pay", "ship")] == [gone, gone]
    assert {reason.reason: reason.needs_somebody for reason in told.task(task).reasons}["undone"] is False
