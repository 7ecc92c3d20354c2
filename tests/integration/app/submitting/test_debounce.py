"""`debounce`: submissions of one key within a short time are merged into one task."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

import tasker
from tasker.errors import InputInvalid, UsageError
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission, SubmissionResult
from tasker.template import compile_text
from tasker.template.plan import Plan
from tests.support.command_line import invoke

TEMPLATE = """
name: sync
namespace: crm
version: {version}
debounce: {{{debounce}}}
{more}
steps:
  - {{name: fetch, handler: nobody.serves_it}}
  - {{name: late, handler: nobody.serves_it, delay: 1h}}
"""
KEY = "key: input.customer.id, wait: 10m, max_wait: 15m"


@pytest.fixture
def app(database_url: str) -> Iterator[tasker.SyncApp]:
    """A program that runs no steps."""
    with tasker.SyncApp(database_url, work=False) as running:
        yield running


def compiled(debounce: str = KEY, version: str = "1.0.0", more: str = "") -> Plan:
    (plan,) = compile_text(TEMPLATE.format(debounce=debounce, version=version, more=more)).plans
    return plan


def customer(value: object, **more: object) -> dict[str, object]:
    return {"customer": {"id": value}, **more}


def rows(url: str, query: str, *params: Any) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query.encode(), params).fetchall()


def pass_time(url: str, minutes: int) -> None:
    """Let everything that is stored be so much older."""
    shift = f"- interval '{minutes} minutes'"
    rows(url, f"with a as (update tasker.tasks set run_at = run_at {shift}), "
         f"b as (update tasker.debounces set latest_at = latest_at {shift}), "
         f"d as (update tasker.task_details set deadline_at = deadline_at {shift}), "
         f"c as (update tasker.workflow_steps set due_at = due_at {shift}) "
         f"update tasker.timers set due_at = due_at {shift} returning 1")  # fmt: skip


def context_of(url: str, task: str) -> Any:
    ((context,),) = rows(url, "select context from tasker.task_details where task_uuid = %s", task)
    return context


def times(url: str, task: str) -> dict[str, datetime]:
    """When the task begins, and when each of its timers is due; `late` waits an hour longer."""
    query = """select coalesce(s.name, m.kind::text), m.due_at from tasker.timers m
      left join tasker.workflow_steps s on s.workflow_step_uuid = m.subject where m.task_uuid = %s"""
    ((start,),) = rows(url, "select run_at from tasker.tasks where task_uuid = %s", task)
    return {"start": start, **dict(rows(url, query, task))}


def test_submissions_of_a_key_become_one_task_with_the_last_input(app: tasker.SyncApp, database_url: str) -> None:
    first = app.submit(compiled(), customer(7, run="a"))
    again = app.submit(compiled(), customer(7, run="b"))
    other = app.submit(compiled(), customer(8))

    assert (first.created, first.debounced) == (True, False)
    assert again == SubmissionResult(first.task_uuid, 2, created=False, debounced=True)
    assert other.created
    assert context_of(database_url, first.task_uuid) == customer(7, run="b")
    assert len(app.tasks.list()) == 2
    assert not rows(database_url, "select * from tasker.violations_v1('{}')")


def test_each_submission_moves_the_start_until_the_longest_wait(app: tasker.SyncApp, database_url: str) -> None:
    plan = compiled(more="expires_in: 2h\ndeadline: 5h")
    task = app.submit(plan, customer(7)).task_uuid
    before = times(database_url, task)
    assert before["late"] - before["start"] == timedelta(hours=1)

    pass_time(database_url, 3)
    app.submit(plan, customer(7))
    moved = times(database_url, task)
    pass_time(database_url, 8)
    app.submit(plan, customer(7))
    capped = times(database_url, task)
    ((latest,),) = rows(database_url, "select latest_at from tasker.debounces")

    assert moved["start"] > before["start"] - timedelta(minutes=3)
    assert capped["start"] == latest
    for after in (moved, capped):
        assert after["fetch"] == after["start"]
        shifts = {name: after[name] - after["start"] for name in ("late", "x", "d")}
        assert shifts == {name: before[name] - before["start"] for name in shifts}
    ((deadline,),) = rows(database_url, "select deadline_at from tasker.task_details")
    assert deadline == capped["d"]


@pytest.mark.parametrize("gone", ["due", "begun", "cancelled", "upgraded", "pruned"])
def test_a_task_that_is_not_waiting_any_more_gets_no_input(app: tasker.SyncApp, database_url: str, gone: str) -> None:
    first = app.submit(compiled(), customer(7, run="a"))
    if gone == "due":
        pass_time(database_url, 10)
    elif gone == "begun":
        app.steps.resolve(first.task_uuid, "fetch", actor="me", reason="by hand")
    elif gone in ("cancelled", "pruned"):
        app.tasks.cancel(first.task_uuid)
        if gone == "pruned":
            rows(
                database_url,
                """select tasker.prune_v1(jsonb_build_object('named_task_uuid', named_task_uuid, 'failed', troubled,
                'before', now() + interval '1 hour', 'steps', 1000)) from tasker.tasks""",
            )
            assert not rows(database_url, "select from tasker.debounces")
    plan = compiled(version="1.1.0") if gone == "upgraded" else compiled()

    second = app.submit(plan, customer(7, run="b"))
    third = app.submit(plan, customer(7, run="c"))

    assert (second.created, third.task_uuid) == (True, second.task_uuid)
    if gone != "pruned":
        assert context_of(database_url, first.task_uuid) == customer(7, run="a")
    assert context_of(database_url, second.task_uuid) == customer(7, run="c")


def test_collect_gives_the_task_all_inputs(app: tasker.SyncApp, database_url: str) -> None:
    plan = compiled(KEY + ", keep: collect")
    task = app.submit(plan, customer(7, run="a")).task_uuid
    app.submit_many(plan, [Submission(customer(7, run=run)) for run in "bc"])

    inputs = [customer(7, run=run) for run in "abc"]
    assert context_of(database_url, task) == {**inputs[-1], "collected": inputs}


def test_a_full_task_is_followed_by_the_next(
    app: tasker.SyncApp, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasker.services.submission.input_keys.MOST_COLLECTED", 2)
    plan = compiled(KEY + ", keep: collect")

    results = app.submit_many(plan, [Submission(customer(7, run=run)) for run in range(5)])

    assert [each.created for each in results if isinstance(each, SubmissionResult)] == [True, False, True, False, True]
    lengths = "select jsonb_array_length(context->'collected') from tasker.task_details order by 1 desc"
    assert rows(database_url, lengths) == [(2,), (2,), (1,)]


def test_a_repeated_submission_is_merged_once(app: tasker.SyncApp, database_url: str) -> None:
    plan = compiled(KEY + ", keep: collect")
    task = app.submit(plan, customer(7, run="a")).task_uuid
    for _ in range(2):
        again = app.submit(plan, customer(7, run="b"), idempotency_key="b")
        assert (again.task_uuid, again.debounced) == (task, True)

    assert [each["run"] for each in context_of(database_url, task)["collected"]] == ["a", "b"]


def test_submissions_at_the_same_moment_are_one_task(app: tasker.SyncApp, database_url: str) -> None:
    plan = compiled(KEY + ", keep: collect")
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda run: app.submit(plan, customer(7, run=run)), range(16)))

    assert [each.created for each in results].count(True) == 1
    (task,) = {each.task_uuid for each in results}
    assert sorted(each["run"] for each in context_of(database_url, task)["collected"]) == [*range(16)]


def test_in_a_transaction_of_the_caller_nothing_is_merged_by_a_rollback(app: tasker.SyncApp, database_url: str) -> None:
    plan = compiled()
    task = app.submit(plan, customer(7, run="a")).task_uuid
    with psycopg.connect(database_url) as connection:
        result = app.submit_in(connection, plan, customer(7, run="b"))
        connection.rollback()
        assert (result.task_uuid, result.debounced) == (task, True)
        assert context_of(database_url, task) == customer(7, run="a")
        app.submit_in(connection, plan, customer(7, run="c"))
        connection.commit()
    assert context_of(database_url, task) == customer(7, run="c")


def test_tenants_share_no_key_and_without_a_key_all_tasks_are_merged(app: tasker.SyncApp) -> None:
    acme, globex = (app.submit(compiled(), customer(7), tenant=name) for name in ("acme", "globex"))
    assert acme.task_uuid != globex.task_uuid
    one, other = (app.submit(compiled("wait: 10m", "2.0.0"), customer(number)) for number in (1, 2))
    assert one.task_uuid == other.task_uuid


@pytest.mark.parametrize("option", [{"delay": "5m"}, {"run_at": "2030-01-31T18:00:00Z"}])
def test_a_start_of_the_submission_is_refused(app: tasker.SyncApp, option: Any) -> None:
    with pytest.raises(UsageError, match="the template has `debounce`, which sets the start"):
        app.submit(compiled(), customer(7), **option)


def test_an_input_without_the_key_is_refused(app: tasker.SyncApp) -> None:
    with pytest.raises(InputInvalid, match="key of the template's `debounce`"):
        app.submit(compiled(), {"other": 1})


def test_the_command_line_and_explain_say_what_happens(app: tasker.SyncApp, database_url: str) -> None:
    task = app.submit(compiled(), customer(7)).task_uuid

    submitted = invoke("task", "submit", "crm/sync", "--set", "customer.id=7", database=database_url)
    explained = invoke("task", "explain", task, database=database_url).stdout

    assert (submitted.stdout.strip(), submitted.exit_code) == (task, 0)
    assert "merged into the task of this debounce key" in submitted.stderr
    assert "debounced: submissions of the same key are merged into its task until it begins at" in explained
    assert "submissions so far: 2" in explained
    assert app.tasks.list()[0].waits_until is not None


def test_a_fire_of_a_schedule_is_a_task_of_its_own(app: tasker.SyncApp) -> None:
    waiting = app.submit(compiled(), customer(7)).task_uuid
    app.schedules.create("crm/sync/hourly", {"every": "1h", "context": customer(7)})

    fired = app.schedules.trigger("crm/sync/hourly")

    assert fired != waiting
    assert app.submit(compiled(), customer(7)).task_uuid == waiting
    assert app.submissions.submit(TemplateSubmission("crm", "sync", None, Submission(customer(7)))).debounced
