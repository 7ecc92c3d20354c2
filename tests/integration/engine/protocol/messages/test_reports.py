"""What handlers say is kept with their steps, once, for the claim that said it, and goes with the task."""

from __future__ import annotations

from typing import Any

from tests.support.engine_fixture import Item, Lab, change
from tests.support.random_plans import Spec

HOUR = 3_600_000


def said(claim: Item, number: int = 1, **more: Any) -> dict[str, Any]:
    line = {"level": 20, "logger": "shop", "message": f"line {number}", "fields": None, "ago_ms": 0}
    return {**named(claim), "number": number, **line, **more}


def progress(claim: Item, fraction: float | None, **more: Any) -> dict[str, Any]:
    return {**named(claim), "fraction": fraction, "done": None, "total": None, "message": None, **more}


def named(claim: Item) -> dict[str, Any]:
    return {name: claim[name] for name in ("task", "step", "token", "attempt")}


def report(lab: Lab, lines: list[dict[str, Any]] | None = None, steps: list[dict[str, Any]] | None = None) -> None:
    lab.one.core("report", {"lines": lines or [], "progress": steps or []})


def lines_of(lab: Lab, task: str) -> list[tuple[Any, ...]]:
    query = "select message, attempt, level, fields from tasker.step_logs where task_uuid = %s order by logged_at, line"
    return list(lab.observer.rows(query, task))


def reported(lab: Lab, task: str) -> list[dict[str, Any] | None]:
    query = """select tasker.reported(p, s) from tasker.workflow_steps s left join tasker.step_progress p
      using (workflow_step_uuid) where s.task_uuid = %s order by s.workflow_step_uuid"""
    return [row[0] for row in lab.observer.rows(query, task)]


def test_lines_are_kept_once_however_often_they_are_brought(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), Spec("b")))
    lines = [said(claims["a"], 1, fields={"n": 1}), said(claims["a"], 2, level=30), said(claims["b"], 1)]

    report(lab, lines)
    report(lab, lines)

    assert sorted(lines_of(lab, task), key=str) == [
        ("line 1", 1, 20, None),
        ("line 1", 1, 20, {"n": 1}),
        ("line 2", 1, 30, None),
    ]


def test_lines_stand_in_the_order_of_time_by_the_clock_of_the_database(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    ages = {1: 10, 2: 2_000, 3: -HOUR}  # a clock that was put back in between makes nothing come from the future

    report(lab, [said(claims["s0"], number, ago_ms=age) for number, age in ages.items()])

    assert [message for message, *_ in lines_of(lab, task)] == ["line 2", "line 1", "line 3"]
    late = "select count(*) from tasker.step_logs where task_uuid = %s and logged_at > tasker.now()"
    assert lab.observer.value(late, task) == 0


def test_progress_holds_for_the_claim_that_said_it_while_it_runs(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    first = claims["s0"]
    report(lab, steps=[progress(first, 0.25, message="a quarter")])
    (told,) = reported(lab, task)
    assert told is not None
    assert (told["percent"], told["message"], told["eta_seconds"]) == (25, "a quarter", None)

    lab.one.advance(change("release", first))
    assert reported(lab, task) == [None], "the next attempt begins with none"
    second = lab.running_claims(task)["s0"]
    report(lab, steps=[progress(first, 0.9)])
    assert reported(lab, task) == [None], "an old claim has nothing to say"
    report(lab, steps=[progress({**second, "attempt": 2}, None, done=3)])
    (told,) = reported(lab, task)
    assert told is not None
    assert (told["percent"], told["done"]) == (None, 3)


def test_what_is_left_is_estimated_by_the_pace_since_the_first_report(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    report(lab, steps=[progress(claims["s0"], 0.2)])
    lab.observer.execute("update tasker.step_progress set first_at = first_at - interval '30 seconds'")

    report(lab, steps=[progress(claims["s0"], 0.5)])

    (told,) = reported(lab, task)
    assert told is not None
    assert 49 <= told["eta_seconds"] <= 52, "0.3 took 30 seconds, so 0.5 will take 50"


def test_what_comes_behind_a_prune_leaves_nothing(lab: Lab) -> None:
    nobody = {"task": "01900000-0000-7000-8000-000000000000", "step": "01900000-0000-7000-8000-000000000001"}

    report(lab, [said({**nobody, "token": 1, "attempt": 1})], [progress({**nobody, "token": 1, "attempt": 1}, 0.1)])

    assert lab.observer.value("select count(*) from tasker.step_logs") == 0
    assert lab.observer.value("select count(*) from tasker.step_progress") == 0
