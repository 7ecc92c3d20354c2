"""Schedules of a program: created, fired by its own worker, and changed by every call."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

import tasker
from tasker.errors import InputInvalid, ScheduleNotFound, StateMachineError, TemplateNotFound, UsageError
from tasker.redaction import REDACTED
from tasker.template import compile_text
from tasker.template.plan import Plan
from tests.integration.app.program import TEMPLATE, value
from tests.support.waiting import until

NAME = "caller/greeting/often"
KEYS: dict[str, Any] = {"cron": "0 2 * * *", "context": {"name": "Ada"}}


@pytest.fixture
def registered(app: tasker.SyncApp, plan: Plan) -> tasker.SyncApp:
    app.plan(plan)  # so that its namespace is served
    app.plans.register(plan)
    return app


def test_a_worker_fires_its_schedules(registered: tasker.SyncApp) -> None:
    registered.schedules.create(NAME, {"cron": "* * * * * *", "overlap": "allow", "context": {"name": "Ada"}})

    until(lambda: len(registered.schedules.fires(NAME)) >= 3, "it has fired three times")

    registered.schedules.pause(NAME)
    fires = [fire for fire in registered.schedules.fires(NAME) if fire.outcome == "fired"]
    assert len({fire.fire_at for fire in fires}) == len({fire.task_uuid for fire in fires}) == len(fires)
    report = registered.wait(str(fires[-1].task_uuid), timeout=60)
    assert report.steps["greet"].result == {"text": "Hello, Ada!"}
    assert registered.schedules.get(NAME).state == "paused"


def test_a_schedule_of_a_template_fires_when_it_is_registered(app: tasker.SyncApp) -> None:
    declared = "schedules: [{name: often, every: 1s, overlap: allow, context: {name: Eve}}]\n"
    (plan,) = compile_text(TEMPLATE + declared).plans
    app.plan(plan)
    app.plans.register(plan)

    until(lambda: len(app.schedules.fires(NAME)) >= 2, "it has fired twice")

    with pytest.raises(StateMachineError, match="declared by its template"):
        app.schedules.delete(NAME)
    with pytest.raises(StateMachineError, match="declared by its template"):
        app.schedules.create(NAME, KEYS, overwrite=True)
    app.schedules.pause(NAME)


@pytest.mark.parametrize(
    ("name", "keys", "error", "message"),
    [
        (NAME, {"cron": "0 25 * * *"}, UsageError, "`25` is not valid as the hour"),
        (NAME, {"crom": "0 2 * * *"}, UsageError, "unknown key `crom`"),
        (NAME, {}, UsageError, "`cron` or `every` is missing"),
        (NAME, {"every": "1h"}, InputInvalid, "name: is required"),
        ("often", KEYS, UsageError, "does not name a schedule"),
        ("caller/nothing/often", KEYS, TemplateNotFound, "no template caller/nothing"),
    ],
)
def test_a_schedule_with_a_mistake_is_refused(
    registered: tasker.SyncApp, name: str, keys: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        registered.schedules.create(name, keys)
    assert registered.schedules.list() == []


def test_a_schedule_is_overwritten_only_when_asked(registered: tasker.SyncApp) -> None:
    first = registered.schedules.create(NAME, KEYS)
    with pytest.raises(StateMachineError, match="exists"):
        registered.schedules.create(NAME, KEYS)

    second = registered.schedules.create(NAME, {**KEYS, "cron": "0 3 * * *"}, overwrite=True)

    assert second.schedule_uuid == first.schedule_uuid
    assert registered.schedules.get(NAME).keys == {"cron": "0 3 * * *", "context": {"name": "Ada"}}
    assert [each.keys for each in registered.schedules.list()] == [{"cron": "0 3 * * *"}]


def test_unknown_schedules_are_not_found(registered: tasker.SyncApp) -> None:
    calls = [
        lambda: registered.schedules.get(NAME),
        lambda: registered.schedules.fires(NAME),
        lambda: registered.schedules.upcoming(NAME),
        lambda: registered.schedules.pause(NAME),
        lambda: registered.schedules.resume(NAME),
        lambda: registered.schedules.delete(NAME),
        lambda: registered.schedules.trigger(NAME),
    ]
    for call in calls:
        with pytest.raises(ScheduleNotFound):
            call()


def test_lists_are_pages(registered: tasker.SyncApp) -> None:
    names = [f"caller/greeting/{name}" for name in ("a", "b", "c")]
    for name in names:
        registered.schedules.create(name, KEYS)

    first = registered.schedules.list(limit=2)
    rest = registered.schedules.list(after=first[-1].address, namespace="caller", template="greeting")

    assert [each.address for each in (*first, *rest)] == names
    assert registered.schedules.list(namespaces=["other"]) == []


def test_a_backfill_is_planned_and_then_started(registered: tasker.SyncApp) -> None:
    registered.schedules.create(NAME, KEYS)
    begin, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 4, tzinfo=UTC)

    planned = registered.schedules.plan_backfill(NAME, begin, end)
    assert (len(planned.fires), planned.left_out, planned.started) == (3, 0, False)
    assert registered.schedules.fires(NAME) == []
    assert registered.schedules.backfill(NAME, begin, end).started
    until(lambda: {f.outcome for f in registered.schedules.fires(NAME)} == {"fired"}, "all three are submitted")

    again = registered.schedules.backfill(NAME, begin, end)
    assert (again.fires, again.left_out, again.started) == ([], 3, False)


def test_a_backfill_has_a_span_of_the_past(registered: tasker.SyncApp) -> None:
    registered.schedules.create(NAME, KEYS)
    now = datetime.now(UTC)
    with pytest.raises(UsageError, match="ends in the past"):
        registered.schedules.plan_backfill(NAME, now - timedelta(days=1), now + timedelta(days=1))
    with pytest.raises(UsageError, match="its begin is before its end"):
        registered.schedules.plan_backfill(NAME, now, now - timedelta(days=1))
    with pytest.raises(UsageError, match="more than 500"):
        registered.schedules.plan_backfill(NAME, now - timedelta(days=600), now)
    with pytest.raises(UsageError, match="no zone"):
        registered.schedules.plan_backfill(NAME, datetime(2026, 1, 1), now)


def test_changes_are_recorded_with_their_actor(registered: tasker.SyncApp) -> None:
    registered.schedules.create(NAME, KEYS, actor="ann")
    registered.schedules.pause(NAME, actor="bob", reason="enough")
    registered.schedules.trigger(NAME, actor="cid", reason="now")

    paused = registered.schedules.get(NAME)
    assert paused.paused is not None
    assert (paused.paused.actor, paused.paused.reason) == ("bob", "enough")
    assert paused.sentence.startswith("paused by bob since ")
    (fire,) = registered.schedules.fires(NAME)
    assert (fire.kind, fire.detail) == ("trigger", {"actor": "cid", "reason": "now"})
    assert value(registered.database_url, "select initiator from tasker.task_details") == f"schedule:{NAME}"


def test_sensitive_values_of_the_context_are_redacted(registered: tasker.SyncApp) -> None:
    text = TEMPLATE.replace("{name: {type: string}}", "{name: {type: string, x-sensitive: true}}")
    registered.plans.register(compile_text(text.replace("1.0.0", "2.0.0")).plans[0])
    registered.schedules.create(NAME, KEYS)

    assert registered.schedules.get(NAME).keys["context"] == {"name": REDACTED}


def stored(app: tasker.SyncApp, outcome: str, detail: str, **spec: str) -> str:
    """The sentence about a schedule whose last fire time had this outcome."""
    with psycopg.connect(app.database_url, autocommit=True) as connection:
        connection.execute("delete from tasker.schedule_fires")
        connection.execute(
            """insert into tasker.schedule_fires (schedule_uuid, fire_at, kind, outcome, detail, decided_at)
            select schedule_uuid, '2026-01-31T02:00:00Z', 'schedule', %s, %s, now() from tasker.schedules""",
            (outcome, detail),
        )
    return app.schedules.get(NAME).sentence.partition("; ")[2]


def test_a_schedule_says_why_its_last_fire_time_has_no_task(registered: tasker.SyncApp) -> None:
    registered.schedules.create(NAME, KEYS)

    assert "; " not in registered.schedules.get(NAME).sentence
    skipped = "the fire time 2026-01-31 02:00:00 UTC was skipped, because a task was open"
    assert stored(registered, "skipped", "{}") == f"{skipped} (overlap: skip)"
    assert stored(registered, "skipped", '{"running": "019b"}') == f"{skipped}: 019b"
    assert stored(registered, "missed", '{"count": 3, "from": "2026-01-29T02:00:00Z"}') == (
        "the fire time 2026-01-31 02:00:00 UTC and 2 before it were missed, because no process was at work "
        "(missed_fire: once)"
    )
    refused = stored(registered, "refused", '{"error": "name: expected a text\\nmore"}')
    assert refused == "the fire time 2026-01-31 02:00:00 UTC was refused: name: expected a text"


def test_a_schedule_says_that_no_process_could_fire_it_or_that_it_is_overdue(plan: Plan, database_url: str) -> None:
    with tasker.SyncApp(database_url, work=False) as program:
        program.plans.register(plan)
        program.schedules.create(NAME, KEYS)
        assert program.schedules.get(NAME).sentence.endswith(
            "; no process is at work that could fire it: start a worker or an orchestrator"
        )
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(
                """insert into tasker.workers (worker_uuid, kind, host, pid, version, namespaces, concurrency, beat_at,
                lease_until, started_at) values (gen_random_uuid(), 'worker', 'here', 1, '', '{}', 1, now(),
                now() + interval '1 hour', now())"""
            )
            connection.execute("update tasker.timers set due_at = now() - interval '2 minutes' where kind = 's'")
        assert "; it is overdue: " in program.schedules.get(NAME).sentence
