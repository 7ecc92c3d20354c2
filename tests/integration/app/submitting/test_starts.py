"""Tasks that are submitted for a later moment: by every way to submit, seen by every way to look."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

import tasker
from tasker.errors import UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission
from tasker.step_handler import again_in, step_handler
from tasker.template import compile_text
from tasker.template.plan import Plan
from tasker.types import StepContext
from tests.support.registered import order

LATER = timedelta(hours=2)


def begins_in(app: tasker.SyncApp, task_uuid: str) -> float:
    """Seconds from the creation of the task until it begins."""
    report = app.tasks.report(task_uuid)
    assert report.run_at == report.waits_until is not None
    assert report.status == "waiting_for_dependencies"
    return (report.run_at - report.created_at).total_seconds()


@pytest.mark.parametrize("delay", [LATER, 7200, 7200.0, "2h", "1h60m"])
def test_a_delay_may_be_a_timedelta_seconds_or_text(app: tasker.SyncApp, plan: Plan, delay: Any) -> None:
    assert begins_in(app, app.submit(plan, {"name": "a"}, delay=delay).task_uuid) == 7200


def test_a_time_may_be_a_datetime_or_text_and_has_a_zone(app: tasker.SyncApp, plan: Plan) -> None:
    moment = (datetime.now(UTC) + LATER).replace(microsecond=0)
    tasks = [
        app.submit(plan, {"name": str(n)}, run_at=run_at).task_uuid
        for n, run_at in enumerate([moment, moment.isoformat(), moment.astimezone(None).isoformat()])
    ]

    assert [app.tasks.report(task).run_at for task in tasks] == [moment] * 3


def test_every_way_to_submit_takes_a_start(app: tasker.SyncApp, plan: Plan) -> None:
    request = Submission({"name": "many"}, delay="2h")
    tasks = [each.task_uuid for each in app.submit_many(plan, [request])]  # type: ignore[union-attr]
    order = TemplateSubmission(plan.namespace, plan.name, None, Submission({"name": "order"}, delay="2h"))
    tasks += [each.task_uuid for each in app.submissions.submit_many([order])]  # type: ignore[union-attr]
    with psycopg.connect(app.database_url) as connection:
        tasks.append(app.submit_in(connection, plan, {"name": "in"}, delay="2h").task_uuid)
        tasks.append(tasker.submit_in(connection, plan, {"name": "module"}, delay="2h").task_uuid)

    assert [begins_in(app, task) for task in tasks] == [7200] * 4


def test_a_start_that_is_rolled_back_leaves_nothing(app: tasker.SyncApp, plan: Plan) -> None:
    with psycopg.connect(app.database_url) as connection:
        app.submit_in(connection, plan, {"name": "in"}, delay="2h")
        connection.rollback()
        assert connection.execute("select count(*) from tasker.timers").fetchone() == (0,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delay": "5"}, r"delay: expected a duration such as .*, got '5'; did you mean 5s\?"),
        ({"delay": -1}, "delay: expected a duration from 0s to 366d, got -1s"),
        ({"delay": True}, "delay: expected a duration"),
        ({"run_at": "tomorrow"}, "run_at: expected a time with a zone, such as 2026-01-31T18:00:00Z, got 'tomorrow'"),
        ({"run_at": "2030-01-01T10:00:00"}, "run_at: .* which has no zone"),
        ({"run_at": datetime(2030, 1, 1)}, "run_at: .* which has no zone"),
        ({"run_at": 1893456000}, "run_at: expected a time with a zone"),
        ({"run_at": datetime(2030, 1, 1, tzinfo=UTC), "delay": "5m"}, "run_at and delay exclude each other"),
    ],
)
def test_what_is_no_start_is_refused(app: tasker.SyncApp, plan: Plan, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        app.submit(plan, {"name": "a"}, **options)


def test_a_delayed_task_runs_at_its_time_in_this_program(app: tasker.SyncApp, plan: Plan) -> None:
    task = app.submit(plan, {"name": "soon"}, delay=0.3).task_uuid

    report = app.wait(task, timeout=60)

    assert report.status == "complete"
    assert report.waits_until is None
    with psycopg.connect(app.database_url) as connection:
        ((late,),) = connection.execute(
            """select min(m.created_at) >= max(t.run_at) from tasker.step_moves m, tasker.tasks t
               where m.path like '%%I%%' and m.workflow_step_uuid between t.task_uuid
                 and tasker.step_uuid(t.task_uuid, 100) and t.task_uuid = %s""",
            (task,),
        ).fetchall()
    assert late, "not before its time"


def test_lists_and_views_say_until_when_a_task_waits(app: tasker.SyncApp, plan: Plan) -> None:
    task = app.submit(plan, {"name": "later"}, delay=LATER).task_uuid
    run_at = app.tasks.report(task).run_at
    assert run_at is not None

    (row,) = app.tasks.list()
    view = app.views.task(task)

    assert row.waits_until == run_at
    assert (view.run_at, view.waits_until) == (run_at, run_at)
    assert (view.ready_steps, view.execution_status) == (0, "waiting_for_dependencies")
    (reason,) = app.tasks.explain(task).reasons
    assert reason.reason == "scheduled"


def test_a_delayed_task_is_cancelled_as_any_other(app: tasker.SyncApp, plan: Plan) -> None:
    task = app.submit(plan, {"name": "later"}, delay=LATER).task_uuid

    app.tasks.cancel(task, reason="not needed")

    assert app.wait(task, timeout=60).status == "cancelled"


def test_the_identity_of_a_delayed_task_is_that_of_its_input(app: tasker.SyncApp, plan: Plan) -> None:
    task = app.submit(plan, {"name": "later"}, delay=LATER, idempotency_key="k").task_uuid

    assert app.submit(plan, {"name": "later"}, idempotency_key="k", on_duplicate="return").task_uuid == task


GATED = """
name: trial
namespace: caller
version: 1
steps:
  - {name: welcome, handler: greet}
  - {name: remind, handler: greet, dependencies: [welcome], delay: 300ms}
  - {name: close, handler: greet, dependencies: [remind], not_before: input.ends_at}
"""


def test_steps_of_a_template_wait_for_their_times(app: tasker.SyncApp) -> None:
    (plan,) = compile_text(GATED).plans
    ends_at = datetime.now(UTC) + timedelta(seconds=1.5)

    task = app.submit(plan, {"name": "a", "ends_at": ends_at.isoformat()}).task_uuid
    assert app.wait(task, timeout=60).status == "complete"

    history = [each for each in app.tasks.history(task) if each.to_state in ("in_progress", "complete")]
    started = {each.step: each.at for each in history if each.to_state == "in_progress"}
    ended = {each.step: each.at for each in history if each.to_state == "complete"}
    assert started["remind"] - ended["welcome"] >= timedelta(seconds=0.3)
    assert started["close"] >= ends_at


def test_a_step_without_a_time_in_its_input_fails_and_says_where_it_looked(app: tasker.SyncApp) -> None:
    (plan,) = compile_text(GATED).plans

    report = app.run(plan, {"name": "a", "ends_at": "some day"}, timeout=60)

    assert report.status == "error"
    assert report.error is not None
    assert (report.error["step"], report.error["type"]) == ("close", "not_a_time")
    assert report.error["message"].endswith("at input.ends_at")


def test_a_task_expires_that_no_worker_begins(database_url: str, plan: Plan, app: tasker.SyncApp) -> None:
    (nobody,) = compile_text(
        "{name: nobody, namespace: unserved, version: 1, expires_in: 300ms, steps: [{name: a, handler: greet}]}"
    ).plans
    app.plans.register(nobody)
    tasks = [
        app.submissions.submit(order(nobody, Submission({"n": n}, expires_in=wish))).task_uuid
        for n, wish in ((1, None), (2, "1h"))
    ]

    report = app.wait(tasks[0], timeout=60)

    assert (report.status, report.cancel_reason) == ("cancelled", "expired")
    later = app.tasks.report(tasks[1])
    assert later.expires_at is not None
    assert (later.expires_at - later.created_at).total_seconds() == 3600


@pytest.mark.parametrize("deadline", [LATER, 7200, "2h", datetime(2100, 1, 1, tzinfo=UTC), "2100-01-01T00:00:00Z"])
def test_every_way_to_submit_takes_a_deadline(app: tasker.SyncApp, plan: Plan, deadline: Any) -> None:
    request = Submission({"name": "many"}, deadline=deadline, delay="1h")
    tasks = [each.task_uuid for each in app.submit_many(plan, [request])]  # type: ignore[union-attr]
    order = TemplateSubmission(
        plan.namespace, plan.name, None, Submission({"name": "order"}, deadline=deadline, delay="1h")
    )
    tasks += [each.task_uuid for each in app.submissions.submit_many([order])]  # type: ignore[union-attr]
    tasks.append(app.submit(plan, {"name": "one"}, deadline=deadline, delay="1h").task_uuid)
    with psycopg.connect(app.database_url) as connection:
        tasks.append(app.submit_in(connection, plan, {"name": "in"}, deadline=deadline, delay="1h").task_uuid)

    for report in map(app.tasks.report, tasks):
        expected = datetime(2100, 1, 1, tzinfo=UTC) if "2100" in str(deadline) else (report.run_at or LATER) + LATER
        assert report.deadline_at == expected
        assert app.views.task(report.task_uuid).deadline_at == expected
        assert [reason.reason for reason in app.tasks.explain(report.task_uuid).reasons] == ["scheduled", "dated"]


def test_a_task_that_no_worker_serves_ends_with_the_deadline_of_its_template(app: tasker.SyncApp) -> None:
    (nobody,) = compile_text(
        "{name: nobody, namespace: unserved, version: 1, deadline: 300ms, steps: [{name: a, handler: greet}]}"
    ).plans
    app.plans.register(nobody)

    report = app.wait(app.submissions.submit(order(nobody, Submission({"n": 1}))).task_uuid, timeout=60)

    assert report.status == "error"
    assert report.error is not None
    assert report.error["type"] == "deadline_exceeded"


@pytest.mark.parametrize("deadline", ["soon", 0, "2100-01-01T00:00:00", -5, "0s"])
def test_a_deadline_that_is_none_is_refused(app: tasker.SyncApp, plan: Plan, deadline: Any) -> None:
    with pytest.raises(UsageError, match="deadline: expected"):
        app.submit(plan, {"name": "a"}, deadline=deadline)


def test_a_step_is_called_again_until_what_it_waits_for_is_there(
    app: tasker.SyncApp, registry: HandlerRegistry
) -> None:
    calls: list[int] = []

    @step_handler("looks")
    def looks(context: StepContext) -> dict[str, int]:
        calls.append(context.retry_count)
        if len(calls) < 3:
            again_in(0.05, reason="not yet", limit=2)
        return {"calls": len(calls)}

    registry.register("looks", looks)
    (plan,) = compile_text("{name: looks, namespace: caller, version: 1, steps: [{name: a, handler: looks}]}").plans

    report = app.run(plan, {}, timeout=60)

    assert report.status == "complete"
    assert report.results["a"] == {"calls": 3}
    assert calls == [0, 0, 0]
    assert report.steps["a"].attempts == 1


def test_a_rerun_has_as_much_time_as_its_task_had(app: tasker.SyncApp, plan: Plan) -> None:
    task = app.submit(plan, {"name": "again"}, deadline="2h").task_uuid
    first = app.wait(task, timeout=60)

    begun = app.reruns.start(task, next(iter(first.steps)), actor="ada", reason="again")

    report = app.tasks.report(begun.task_uuid)
    assert report.deadline_at is not None
    assert report.deadline_at - report.created_at == LATER


@pytest.mark.parametrize(("deadline", "most"), [("1h", 3600), (None, None)])
def test_a_handler_reads_how_much_time_is_left(
    app: tasker.SyncApp, registry: HandlerRegistry, deadline: str | None, most: float | None
) -> None:
    @step_handler("left")
    def left(context: StepContext) -> dict[str, float | None]:
        return {"left": context.time_left}

    registry.register("left", left)
    (plan,) = compile_text("{name: left, namespace: caller, version: 1, steps: [{name: a, handler: left}]}").plans

    task = app.submit(plan, {}, deadline=deadline).task_uuid

    seen = app.wait(task, timeout=60).results["a"]["left"]
    assert seen is None if most is None else most - 120 < seen <= most
