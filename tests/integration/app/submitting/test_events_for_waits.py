"""Events for steps that wait, through a program: sent in transactions of its own and of the caller's."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import psycopg
import pytest

import tasker
from tasker.cli.commands.event_sending import sent_text
from tasker.errors import NotStorable, UsageError
from tasker.services import event_matching
from tasker.template import compile_text
from tasker.template.plan import Plan
from tests.support.waiting import until

PAID = """
name: order
namespace: caller
version: 1
steps:
  - name: paid
    type: wait_for_event
    event: payment.settled
    key: input.order
    timeout: 2h
    schema: {type: object, required: [amount], properties: {amount: {type: integer}}}
  - {name: ship, handler: greet, dependencies: [paid], inputs: {name: "paid ${string(steps.paid.payload.amount)}"}}
"""


@pytest.fixture
def order() -> Plan:
    (plan,) = compile_text(PAID).plans
    return plan


def waits(app: tasker.SyncApp, plan: Plan, order: str, name: str = "x") -> str:
    """A task that waits for its event."""
    task = app.submit(plan, {"order": order, "name": name}).task_uuid
    until(lambda: app.tasks.report(task).waiting_for == ["event"], "it waits")
    return task


def test_an_event_ends_a_wait_and_what_follows_reads_its_payload(app: tasker.SyncApp, order: Plan) -> None:
    task = waits(app, order, "7")

    sent = app.send_event("caller", "payment.settled", {"amount": 12}, key=7)

    report = app.wait(task, timeout=60)
    assert (report.status, sent.matched, sent.duplicate) == ("complete", 1, False)
    assert report.steps["paid"].result["payload"] == {"amount": 12}
    (event,) = app.incoming_events.list(namespace="caller", key="7")
    assert (event.name, event.taken, event.refused, event.sent_by) == ("payment.settled", 1, 0, "program")


def test_an_event_in_a_transaction_of_the_caller_counts_from_its_commit(app: tasker.SyncApp, order: Plan) -> None:
    task = waits(app, order, "7")
    with psycopg.connect(app.database_url) as connection:
        app.send_event_in(connection, "caller", "payment.settled", {"amount": 1}, key="7")
        connection.rollback()
        assert app.incoming_events.list() == []
        app.send_event_in(connection, "caller", "payment.settled", {"amount": 2}, key="7")

    assert app.wait(task, timeout=60).steps["paid"].result["payload"] == {"amount": 2}


def test_a_payload_that_does_not_fit_is_left_and_explained(app: tasker.SyncApp, order: Plan) -> None:
    task = waits(app, order, "7")

    sent = app.send_event("caller", "payment.settled", {"amount": "12"}, key="7")
    assert (sent.matched, sent.refused) == (0, 1)
    assert "its payload does not fit the schema of 1 step that waits for it" in sent_text(sent)
    assert "no step waits for it now" in sent_text(app.send_event("caller", "payment.settled", key="8"))

    reason = next(reason for reason in app.tasks.explain(task).reasons if reason.reason == "waits_event")
    assert reason.sentence(UTC).startswith("waits for the event payment.settled with the key 7 until ")
    assert "; the payloads of 1 did not fit, the last because $.amount" in reason.sentence(UTC)
    assert "tasker events send caller payment.settled --key 7 --payload '{}'" in reason.remedy()
    assert app.send_event("caller", "payment.settled", {"amount": 12}, key="7").matched == 1
    assert app.wait(task, timeout=60).status == "complete"


@pytest.mark.parametrize(
    ("word", "status", "ran"),
    [("fail", "error", []), ("continue", "complete", ["ship"]), ("{run: escalate}", "complete", ["escalate"])],
)
def test_a_timeout_is_a_failure_path(app: tasker.SyncApp, word: str, status: str, ran: list[str]) -> None:
    text = PAID.replace("timeout: 2h", f"timeout: 50ms\n    on_timeout: {word}")
    text = text.replace("paid ${string(steps.paid.payload.amount)}", "x")
    text += "  - {name: escalate, handler: greet}\n" if "run" in word else ""
    (plan,) = compile_text(text).plans

    report = app.run(plan, {"order": "7", "name": "x"}, timeout=60)

    assert (report.status, report.steps["paid"].state) == (status, "error")
    assert [name for name, step in report.steps.items() if step.state == "complete"] == ran
    assert report.steps["paid"].failures[-1]["error_type"] == "wait_timed_out"


def test_the_same_dedupe_id_is_dropped(app: tasker.SyncApp, order: Plan) -> None:
    app.plans.register(order)
    first, second = (
        app.send_event("caller", "payment.settled", {"amount": n}, key="7", dedupe_id="p-1") for n in (1, 2)
    )

    assert (first.duplicate, second.duplicate, second.event_uuid) == (False, True, first.event_uuid)
    assert len(app.incoming_events.list(name="payment.settled")) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "no name"}, "invalid event name 'no name'"),
        ({"namespace": "nowhere"}, "there is no namespace 'nowhere'"),
        ({"key": 1.5}, "key: expected text of at most 200 characters, got 1.5"),
        ({"key": "x" * 201}, "key: expected text"),
        ({"dedupe_id": ""}, "dedupe_id: expected text of 1 to 200 characters"),
        ({"keep": "7"}, "keep: expected a duration"),
        ({"keep": 0}, "keep: expected a duration above 0s"),
        ({"payload": "x" * 1_000_001}, "at most 1,000,000 are possible"),
    ],
)
def test_what_is_no_event_is_refused(app: tasker.SyncApp, order: Plan, options: dict[str, Any], message: str) -> None:
    app.plans.register(order)
    with pytest.raises(UsageError, match=message):
        app.send_event(**{"namespace": "caller", "name": "payment.settled", **options})


def test_a_payload_that_cannot_be_stored_is_refused(app: tasker.SyncApp) -> None:
    with pytest.raises(NotStorable):
        app.send_event("caller", "payment.settled", {"amount": float("nan")})


REFUSING = """
create function public.refuse() returns trigger language plpgsql as $$ begin
  if new.task_uuid = '{task}' then raise exception using errcode = '22P02', message = 'refused by a test'; end if;
  return new;
end $$;
create trigger refuses before insert on tasker.wait_events for each row execute function public.refuse()
"""


def test_an_event_that_the_database_refuses_is_stored_and_stops_no_other(app: tasker.SyncApp, order: Plan) -> None:
    first, second = waits(app, order, "7"), waits(app, order, "8")
    with psycopg.connect(app.database_url, autocommit=True) as connection:
        connection.execute(REFUSING.format(task=first).encode())

        assert app.send_event("caller", "payment.settled", {"amount": 1}, key="7").matched == 0
        app.send_event("caller", "payment.settled", {"amount": 2}, key="8")

        assert app.wait(second, timeout=60).steps["paid"].result["payload"] == {"amount": 2}
        query = "select key from tasker.incoming_events where routed_at is null"
        until(lambda: connection.execute(query).fetchall() == [("7",)], "only the refused one is left")
        connection.execute("drop trigger refuses on tasker.wait_events")
    assert app.wait(first, timeout=60).steps["paid"].result["payload"] == {"amount": 1}


def test_an_event_whose_waits_cannot_be_looked_for_is_sent(app: tasker.SyncApp, order: Plan) -> None:
    """An error would have it sent again, as a second event."""
    task = waits(app, order, "7")
    with psycopg.connect(app.database_url, autocommit=True) as connection:
        connection.execute(b"alter function tasker.unmatched_v1(jsonb) rename to gone_v1")

        sent = app.send_event("caller", "payment.settled", {"amount": 12}, key=7)

        connection.execute(b"alter function tasker.gone_v1(jsonb) rename to unmatched_v1")
    assert sent.matched == 0
    assert app.wait(task, timeout=60).status == "complete"


def test_an_event_for_very_many_waits_holds_up_neither_its_sender_nor_timers(
    app: tasker.SyncApp, order: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [waits(app, order, "7", name) for name in "abcdefg"]
    monkeypatch.setattr(event_matching, "PAIRS", 1)

    sent = app.send_event("caller", "payment.settled", {"amount": 1}, key="7")

    assert sent.matched <= 2, "the pairs of two reads"
    assert {app.wait(task, timeout=60).status for task in tasks} == {"complete"}
