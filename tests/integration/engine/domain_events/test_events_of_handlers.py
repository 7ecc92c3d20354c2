"""What a handler publishes itself is written with the result that is accepted, and nothing is where none is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.engine.domain_events.test_durable_events import declared, rows, running, told, write
from tests.support.engine_fixture import Item, Lab, change, fail, ok, retry, verdict


def own(name: str, payload: Any = None, condition: str = "success", mode: str = "durable", **more: Any) -> Item:
    return {"n": name, "c": condition, "d": mode, "p": payload or {"of": name}, "by": "charge", **more}


def test_it_is_written_behind_those_that_the_template_declares_in_the_order_of_the_calls(lab: Lab) -> None:
    task, claim = running(lab, declared("paid"), declared("failed", "failure"))

    write(lab.one, ok(claim), **{"2": own("first"), "3": own("second", mode="broadcast"), "10": own("last")})

    found = lab.observer.core("events", {"task": task, "limit": 10})["events"]
    assert [event["event_name"] for event in found] == ["paid", "first", "second", "last"]
    assert found[1]["payload"] == {"of": "first"}
    assert (found[1]["metadata"]["fired_by"], found[2]["delivery_mode"]) == ("charge", "broadcast")
    assert len({event["event_id"] for event in found}) == 4
    lab.check()


@pytest.mark.parametrize(
    ("item", "fires"),
    [
        (ok, ["success", "always"]),
        (retry, ["failure", "retryable_failure", "always"]),
        (fail, ["failure", "permanent_failure", "always"]),
        (lambda claim: change("release", claim, n={"reason": "closing"}), []),
    ],
    ids=["success", "retry", "failure", "released"],
)
def test_the_outcome_that_is_accepted_decides(lab: Lab, item: Any, fires: list[str]) -> None:
    task, claim = running(lab)
    conditions = ("success", "failure", "retryable_failure", "permanent_failure", "always")

    write(lab.one, item(claim), **{str(number): own(each, condition=each) for number, each in enumerate(conditions)})

    assert told(lab, task) == fires
    lab.check()


def test_a_result_that_is_refused_or_comes_twice_leaves_no_more(lab: Lab) -> None:
    task, claim = running(lab)
    stale = ok({**claim, "token": claim["token"] - 1})

    assert verdict(write(lab.one, stale, **{"0": own("mine")}), claim) == "stale"
    assert rows(lab, task) == []
    write(lab.one, ok(claim), **{"0": own("mine", id=str(lab.one.value("select tasker.uuid_v7()")))})
    write(lab.one, ok(claim), **{"0": own("mine")})

    assert told(lab, task) == ["mine"]
    lab.check()


def test_a_write_that_does_not_commit_leaves_none(lab: Lab) -> None:
    task, claim = running(lab)

    with lab.one.connection.transaction(force_rollback=True):
        write(lab.one, ok(claim), **{"0": own("mine")})

    assert rows(lab, task) == []


def test_those_of_a_parked_result_wait_until_it_is_accepted(lab: Lab) -> None:
    task, claim = running(lab)
    lab.one.core("park", {"worker": lab.one.worker, "items": [{**ok(claim), "ev": {"0": own("mine")}}]})
    assert rows(lab, task) == []
    asked = {"steps": [claim["step"]]}
    (parked,) = lab.two.core("parked", {**asked, "events": True})["items"]
    assert parked["publishes"] is True
    assert "publishes" not in lab.two.core("parked", asked)["items"][0], "an older release takes no further key"

    item = {"s": claim["step"], "t": task, "k": claim["token"], "w": claim["worker"], "kind": "ok", "ev": None}
    lab.two.advance(item, events=True)

    assert told(lab, task) == ["mine"]
    lab.check()


def test_a_parked_result_that_cannot_be_used_publishes_what_belongs_to_its_failure(lab: Lab) -> None:
    task, claim = running(lab)
    events = {"0": own("mine"), "1": own("broken", condition="failure")}
    lab.one.core("park", {"worker": lab.one.worker, "items": [{**ok(claim), "ev": events}]})

    lab.two.advance({**fail(claim), "w": claim["worker"]})

    assert told(lab, task) == ["broken"]
    lab.check()


def test_one_that_is_withheld_is_kept_with_the_reason(lab: Lab) -> None:
    task, claim = running(lab)

    write(lab.one, ok(claim), **{"0": {"n": "mine", "c": "success", "d": "durable", "w": "no JSON"}})

    assert told(lab, task) == []
    (event,) = lab.observer.core("events", {"task": task, "limit": 10, "withheld": True})["events"]
    assert (event["event_name"], event["withheld"], event["payload"]) == ("mine", "no JSON", None)
    lab.check()


@pytest.mark.parametrize(
    ("harm", "rule"),
    [
        ("delete from tasker.domain_events where name = 'b'", "events that a handler published are missing"),
        ("update tasker.domain_events set published_with = null", "event that nobody published"),
        ("update tasker.domain_events set outcome = 'permanent_failure'", "event of what was not accepted"),
    ],
)
def test_one_that_is_missing_or_invented_is_found(lab: Lab, harm: str, rule: str) -> None:
    task, claim = running(lab)
    write(lab.one, ok(claim), **{"0": own("a"), "1": own("b")})

    with lab.one.connection.transaction(force_rollback=True):
        lab.one.execute(harm)
        found = lab.one.rows("select rule from tasker.violations_v1(%s::jsonb)", json.dumps({"tasks": [task]}))

    assert rule in {row.rule for row in found}


def test_a_checkpoint_keeps_what_was_published_before_it_and_shows_it_to_nobody(lab: Lab) -> None:
    _, claim = running(lab)
    position = {"step": claim["step"], "token": claim["token"], "cursor": 5, "items_processed": 5}
    plain = lab.one.core("checkpoint", {**position, "accumulated_results": None})["checkpoint"]
    kept = lab.one.core("checkpoint", {**position, "accumulated_results": None, "events": [{"name": "mine"}]})

    assert "events" not in plain
    assert kept["checkpoint"]["events"] == [{"name": "mine"}]
