"""Durable events are those of accepted results, no more and no less, and readers get each, in the order of its task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import psycopg
import pytest

from tests.support.copies import copy_task
from tests.support.engine_fixture import Item, Lab, Session, change, fail, ok, retry, verdict
from tests.support.random_plans import Spec

CONDITIONS = ("success", "failure", "retryable_failure", "permanent_failure", "always")


def declared(name: str, condition: str = "success", mode: str = "durable", **more: Any) -> Mapping[str, Any]:
    return {"name": name, "condition": condition, "delivery_mode": mode, **more}


def running(lab: Lab, *events: Mapping[str, Any], name: str = "shop") -> tuple[str, Item]:
    """A task whose first step publishes these events, and the claim of that step."""
    plan = lab.plan(Spec("charge", publishes=events), Spec("ship", depends_on=("charge",)), name=name)
    task, claims = lab.running(plan)
    return task, claims["charge"]


def write(session: Session, item: Item, **ev: Any) -> Item:
    """Bring a result with what the worker made of its events, by number."""
    return session.advance({**item, "ev": ev}, events=True)


def told(lab: Lab, task: str) -> list[str]:
    """The names of the task's events that readers get, in their order."""
    found = lab.observer.core("events", {"task": task, "limit": 100})
    return [event["event_name"] for event in found["events"]]


def rows(lab: Lab, task: str) -> list[Any]:
    return lab.observer.rows("select * from tasker.domain_events where task_uuid = %s order by event_id", task)


def test_an_accepted_result_leaves_its_event_with_it(lab: Lab) -> None:
    task, claim = running(lab, declared("paid"))

    write(lab.one, ok(claim, {"amount": 5}))

    (event,) = lab.observer.core("events", {"task": task, "limit": 10})["events"]
    assert event["payload"] == {"amount": 5}
    assert (event["id"], event["type"]) == (event["event_id"], "paid")
    assert event["metadata"]["step_name"] == "charge"
    assert event["metadata"]["correlation_id"] == str(
        lab.observer.value("select correlation_id from tasker.task_details where task_uuid = %s", task)
    )
    lab.check()


def test_event_page_ends_before_it_grows_too_large_and_skips_none(lab: Lab) -> None:
    """Stored compressed, each payload takes less than a kilobyte."""
    plan = lab.plan(*(Spec(f"s{n}", publishes=[declared("paid")]) for n in range(5)), name="large")
    task, claims = lab.running(plan)
    lab.one.advance(*(ok(claim, {"text": "t" * 65_536}) for claim in claims.values()), events=True)

    which, after, pages = {"task": task, "limit": 10, "max_bytes": 150_000}, 0, []
    while events := (page := lab.observer.core("events", {**which, "after": after}))["events"]:
        pages.append([event["metadata"]["step_name"] for event in events])
        after = page["last"]

    assert pages == [["s0", "s1"], ["s2", "s3"], ["s4"]]
    newest = lab.observer.core("events", {**which, "newest": True})["events"]
    assert [event["metadata"]["step_name"] for event in newest] == ["s3", "s4"]


def test_a_result_that_is_refused_leaves_none(lab: Lab) -> None:
    task, claim = running(lab, declared("paid"))

    answer = write(lab.one, ok({**claim, "token": claim["token"] - 1}))

    assert verdict(answer, claim) == "stale"
    assert rows(lab, task) == []


def test_a_result_that_comes_twice_leaves_one(lab: Lab) -> None:
    task, claim = running(lab, declared("paid"))

    write(lab.one, ok(claim))
    again = write(lab.one, ok(claim))

    assert verdict(again, claim) == "already_accepted"
    assert told(lab, task) == ["paid"]


def test_a_write_that_does_not_commit_leaves_none(lab: Lab) -> None:
    task, claim = running(lab, declared("paid"))

    with lab.one.connection.transaction(force_rollback=True):
        write(lab.one, ok(claim))

    assert rows(lab, task) == []
    write(lab.one, ok(claim))
    assert told(lab, task) == ["paid"]


@pytest.mark.parametrize(
    ("item", "fires"),
    [
        (ok, {"success", "always"}),
        (retry, {"failure", "retryable_failure", "always"}),
        (fail, {"failure", "permanent_failure", "always"}),
        (lambda claim: change("release", claim, n={"reason": "closing"}), set()),
        (lambda claim: change("defer", claim, d=5, n={"reason": "open"}), set()),
    ],
    ids=["success", "retry", "failure", "released", "deferred"],
)
def test_each_outcome_has_the_events_of_its_conditions(lab: Lab, item: Any, fires: set[str]) -> None:
    task, claim = running(lab, *(declared(name, name) for name in CONDITIONS))

    write(lab.one, item(claim))

    assert set(told(lab, task)) == fires
    lab.check()


def test_what_a_worker_made_of_an_event_counts_above_the_result(lab: Lab) -> None:
    task, claim = running(lab, declared("a"), declared("b", checked=True, schema={}), declared("c"))
    made = {"p": {"mine": 1}, "m": {"provider": "x"}, "by": "pay"}

    write(lab.one, ok(claim), **{"0": made, "1": {"w": "its payload does not fit"}})

    a, c = lab.observer.core("events", {"task": task, "limit": 10})["events"]
    assert (a["payload"], a["metadata"]["provider"], a["metadata"]["fired_by"]) == ({"mine": 1}, "x", "pay")
    assert c["payload"] == {"by": "charge"}
    (b,) = lab.observer.core("events", {"task": task, "limit": 10, "withheld": True})["events"]
    assert (b["event_name"], b["payload"], b["position"]) == ("b", None, None)
    lab.check()


def test_a_step_that_nobody_ended_has_its_events_too_but_none_that_must_fit_a_schema(lab: Lab) -> None:
    schema = {"type": "object", "required": ["order"]}
    task, claim = running(lab, declared("gone", "failure"), declared("checked", "failure", schema=schema))

    lab.one.advance({**fail(claim), "n": {"lost": True}})  # as a sweep does, which has no result in hand

    assert told(lab, task) == ["gone"]
    assert [row.name for row in rows(lab, task) if row.withheld] == ["checked"]
    lab.check()


def test_what_is_published_of_a_failure_has_no_traceback(lab: Lab) -> None:
    task, claim = running(lab, declared("gone", "failure"))
    error = {"message": "m", "error_type": "E", "metadata": {"traceback": "secret"}, "handler": "/somewhere"}

    lab.one.advance({**fail(claim), "e": error})

    (event,) = lab.observer.core("events", {"task": task, "limit": 10})["events"]
    assert event["payload"] == {"message": "m", "error_type": "E"}


def test_events_of_a_parked_result_are_written_when_it_is_accepted(lab: Lab) -> None:
    task, claim = running(lab, declared("paid"), declared("other"))
    item = {**ok(claim, {"n": 1}), "ev": {"0": {"p": {"mine": 1}}}}
    lab.one.core("park", {"worker": lab.one.worker, "items": [item]})
    assert rows(lab, task) == []

    lab.two.advance(
        {"s": claim["step"], "t": task, "k": claim["token"], "w": claim["worker"], "kind": "ok", "ev": None},
        events=True,
    )

    assert [row.payload for row in rows(lab, task)] == [{"mine": 1}, {"n": 1}]
    assert lab.observer.value("select count(*) from tasker.parked_events") == 0
    lab.check()


def test_an_operator_who_gives_a_result_publishes_it_and_one_who_waves_a_step_through_does_not(lab: Lab) -> None:
    events = declared("paid"), declared("seen", "always")
    completed, _ = running(lab, *events)
    lab.one.core(
        "operator_change", {"task": completed, "step": "charge", "kind": "complete", "r": {"by": "hand"}, "n": {}}
    )
    resolved, _ = running(lab, *events)
    lab.one.core("operator_change", {"task": resolved, "step": "charge", "kind": "resolve", "n": {}})
    cancelled, _ = running(lab, *events)
    lab.one.core("cancel", {"task": cancelled})

    assert told(lab, completed) == ["paid", "seen"]
    assert rows(lab, completed)[0].fired_by == "tasker"
    assert told(lab, resolved) == told(lab, cancelled) == []
    lab.check()


def test_a_write_that_commits_late_is_still_read(lab: Lab) -> None:
    """Its row is older than one that was read before it was there."""
    _, first = running(lab, declared("late"))
    _, second = running(lab, declared("early"), name="other")

    with lab.transaction(lab.one):
        write(lab.one, ok(first))
        write(lab.two, ok(second))
        before = lab.observer.core("events", {"limit": 10})
    after = lab.observer.core("events", {"limit": 10, "after": before["last"]})

    assert [event["event_name"] for event in before["events"]] == ["early"]
    assert [event["event_name"] for event in after["events"]] == ["late"]


def test_events_of_a_task_keep_their_order_whoever_commits_first(lab: Lab) -> None:
    plan = lab.plan(Spec("a", publishes=(declared("a"),)), Spec("b", publishes=(declared("b"),)))
    task, claims = lab.running(plan)

    with lab.transaction(lab.one):
        write(lab.one, ok(claims["b"]))
        second = lab.later(write, lab.two, ok(claims["a"]))
        lab.waits(second, lab.two, on=lab.one)
    second.result()

    assert told(lab, task) == ["b", "a"]


def test_positions_that_are_being_given_are_not_passed_over(lab: Lab) -> None:
    (_, claim), (_, other) = running(lab, declared("one")), running(lab, declared("two"), name="other")
    write(lab.one, ok(claim))

    with lab.transaction(lab.two):
        lab.two.core("events", {"limit": 10})  # gives a position, and has not committed it
        write(lab.one, ok(other))
        meanwhile = lab.observer.core("events", {"limit": 10})
    after = lab.observer.core("events", {"limit": 10, "after": meanwhile["last"]})

    assert meanwhile["events"] == []
    assert [event["event_name"] for event in after["events"]] == ["one", "two"]


def test_events_that_nobody_has_read_hide_no_later_one(lone_lab: Lab) -> None:
    lab = lone_lab
    task, claim = running(lab, declared("early"))
    write(lab.one, ok(claim))
    lab.one.run_all()
    copy_task(lab.one, task, 10_000)
    task, claim = running(lab, declared("late"), name="other")
    write(lab.one, ok(claim))

    with lab.one.connection.transaction(force_rollback=True):
        newest = lab.one.core("events", {"limit": 1, "newest": True})["events"]
        assert [event["event_name"] for event in newest] == ["late"]
    assert told(lab, task) == ["late"]


def test_sweep_places_events_in_slices_and_a_new_subscriber_all(lone_lab: Lab) -> None:
    lab = lone_lab
    task, claim = running(lab, declared("paid"))
    write(lab.one, ok(claim))
    lab.one.run_all()
    copy_task(lab.one, task, 10_000)
    unplaced = "select count(*) from tasker.unplaced_events"

    with lab.one.connection.transaction(force_rollback=True):
        over = [lab.one.core("place_events", {})["over"] for _ in range(3)]
        assert over == [False, False, True]
    with lab.one.connection.transaction(force_rollback=True):
        lab.one.core("subscribe", {"name": "billing", "holder": lab.one.worker, "lease_ms": 30_000})
        assert lab.one.value(unplaced) == 0
    with lab.one.connection.transaction(force_rollback=True):
        lab.one.core("events", {"limit": 1, "after": 0})
        assert lab.one.value(unplaced) == 0


def test_a_subscriber_goes_on_behind_what_it_acknowledged(lab: Lab) -> None:
    me, you = {"name": "billing", "holder": lab.one.worker}, {"name": "billing", "holder": lab.two.worker}
    began = lab.one.core("subscribe", {**me, "lease_ms": 30_000})
    assert began == {"position": 0}
    assert lab.two.core("subscribe", {**you, "lease_ms": 30_000})["held"] > 0

    lab.one.core("acknowledge", {**me, "position": 7, "lease_ms": 30_000, "leave": False})
    lab.two.set_time(31)

    assert lab.two.core("subscribe", {**you, "lease_ms": 30_000}) == {"position": 7}
    late = lab.one.core("acknowledge", {**me, "position": 9, "lease_ms": 30_000, "leave": False})
    assert late == {"kept": False}


def test_a_subscriber_that_is_stopped_before_it_exists_begins_with_the_events_to_come(lab: Lab) -> None:
    for _ in range(2):
        write(lab.one, ok(running(lab, declared("paid"))[1], {}))
        lab.one.run_all()
    page = lab.observer.core("events", {"limit": 100})
    assert len(page["events"]) == 2
    stop = {"name": "late", "stopped": {"by": "ann", "reason": "moving"}}

    assert [lab.one.core("stop_subscriber", stop) for _ in range(2)] == [{"changed": True}, {"changed": False}]
    assert lab.one.core("stop_subscriber", {**stop, "stopped": None}) == {"changed": True}
    holder = {"name": "late", "holder": lab.one.worker, "lease_ms": 30_000}
    assert lab.one.core("subscribe", holder) == {"position": page["last"]}


def test_a_subscriber_that_is_told_to_read_again_does(lab: Lab) -> None:
    me = {"name": "billing", "holder": lab.one.worker, "lease_ms": 30_000}
    _, claim = running(lab, declared("one"), declared("two"))
    write(lab.one, ok(claim))
    last = lab.one.core("events", {"limit": 10})["last"]
    lab.one.core("subscribe", me)
    lab.one.core("acknowledge", {**me, "position": last, "leave": False})

    again = lab.two.core("rewind", {"name": "billing", "position": last - 1})

    assert (again["from"], again["to"], again["events"]) == (last, last - 1, 1)
    assert lab.one.core("acknowledge", {**me, "position": last, "leave": False}) == {"kept": False}
    assert lab.one.core("subscribe", me) == {"position": last - 1}


def test_events_are_pruned_by_their_age_and_that_breaks_no_promise(lab: Lab) -> None:
    task, claim = running(lab, declared("old"))
    write(lab.one, ok(claim))
    lab.one.set_time(3600)

    kept = lab.one.core("prune_events", {"older_ms": 7_200_000, "limit": 10})
    gone = lab.one.core("prune_events", {"older_ms": 1_000_000, "limit": 10})

    assert (kept["events"], gone["events"], rows(lab, task)) == (0, 1, [])
    lab.check()


@pytest.mark.parametrize(
    ("harm", "rule"),
    [
        ("delete from tasker.domain_events", "accepted result without its event"),
        ("update tasker.domain_events set sort_key = 2", "event of what was not accepted"),
        ("update tasker.domain_events set outcome = 'retryable_failure'", "event of what was not accepted"),
    ],
)
def test_an_event_that_is_missing_or_invented_is_found(lab: Lab, harm: str, rule: str) -> None:
    task, claim = running(lab, declared("paid"))
    write(lab.one, ok(claim))

    with lab.one.connection.transaction(force_rollback=True):
        lab.one.execute(harm)
        found = lab.one.rows("select rule from tasker.violations_v1(%s::jsonb)", json.dumps({"tasks": [task]}))

    assert rule in {row.rule for row in found}


def test_the_same_event_cannot_be_written_twice(lab: Lab) -> None:
    _, claim = running(lab, declared("paid"))
    write(lab.one, ok(claim))

    columns = """created_at, event_uuid, task_uuid, workflow_step_uuid, correlation_id, namespace_id, sort_key, number,
      attempt, name, step_name, outcome, delivery_mode, fired_by, payload"""
    other_id = columns.replace("event_uuid", "tasker.uuid_v7()")
    copy = f"insert into tasker.domain_events ({columns}) select {other_id} from tasker.domain_events"
    with pytest.raises(psycopg.errors.UniqueViolation):
        lab.one.execute(copy)


def test_names_are_patterns_and_only_the_given_namespaces_are_read(lab: Lab) -> None:
    _, claim = running(lab, declared("payment.card_charged"), declared("paymentXcard"))
    write(lab.one, ok(claim))

    def read(**which: Any) -> list[str]:
        return [each["event_name"] for each in lab.one.core("events", {"limit": 10, **which})["events"]]

    assert read(names=["payment.%"]) == ["payment.card_charged"]
    assert read(namespaces=[lab.namespace], names=["%\\_charged"]) == ["payment.card_charged"]
    assert read(namespaces=[]) == []


def test_the_conditions_are_the_same_in_both_languages(lab: Lab) -> None:
    from tasker.execution.event_making import fires

    for condition in CONDITIONS:
        for outcome in ("success", "retryable_failure", "permanent_failure"):
            assert lab.one.value("select tasker.event_fires(%s, %s)", condition, outcome) == fires(condition, outcome)
