"""Retries start when they are due and not before, once, whoever promotes them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engine_fixture import Lab, Session, retry, verdict
from tests.support.random_plans import Spec


def promote(session: Session, **more: Any) -> dict[str, Any]:
    return session.call("due", session.args(**more))


def test_a_retry_is_not_promoted_before_it_is_due(lone_lab: Lab) -> None:
    lab = lone_lab
    task, claims = lab.running(lab.chain(1))
    lab.one.set_time(seconds=0)
    lab.one.advance(retry(claims["s0"], delay_ms=10_000))

    lab.two.set_time(seconds=9)
    early = promote(lab.two)
    assert not early.get("promoted")
    assert 0 < early["next_due_ms"] <= 10_000
    assert lab.states(task) == {"s0": "waiting_for_retry"}
    lab.two.set_time(seconds=11)
    assert promote(lab.two)["promoted"] == 1
    assert lab.states(task) == {"s0": "enqueued"}


def test_nothing_waits_means_no_next_time(lone_lab: Lab) -> None:
    assert "next_due_ms" not in promote(lone_lab.one)


def test_two_promoters_promote_a_step_once(lone_lab: Lab) -> None:
    lab = lone_lab
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(retry(claims["s0"], delay_ms=0))

    with lab.transaction(lab.one):
        assert promote(lab.one)["promoted"] == 1
        assert not promote(lab.two).get("promoted"), "it takes what it can lock"
    assert not promote(lab.two).get("promoted")

    assert lab.step_paths(task, "s0")[-1] == "waiting_for_retry>pending>enqueued"
    assert lab.queue_depth() == 1


def test_a_promoter_that_looked_too_early_does_not_shorten_the_next_delay(lone_lab: Lab) -> None:
    """It read the first failure; meanwhile the step ran again and failed again, and is due much later."""
    lab = lone_lab
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(retry(claims["s0"], delay_ms=0))
    seen = lab.steps(task)["s0"]
    promote(lab.two)
    (second,) = lab.two.claim()
    lab.two.advance(retry(second, delay_ms=60_000))

    late = lab.one.advance({"s": second["step"], "t": task, "kind": "promote", "k": seen.claim_token}, wait=False)

    assert verdict(late, second) == "stale"
    assert lab.states(task) == {"s0": "waiting_for_retry"}


def test_a_due_step_is_handed_to_a_promoter_that_has_room(lone_lab: Lab) -> None:
    lab = lone_lab
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(retry(claims["s0"], delay_ms=0))

    (claim,) = promote(lab.two, slots=1)["claims"]

    assert (claim["attempt"], claim["token"]) == (2, claims["s0"]["token"] + 1)
    assert lab.step_paths(task, "s0")[-1] == "waiting_for_retry>pending>enqueued>in_progress"
    lab.two.finish(claim)
    assert lab.task(task).state == "complete"


def test_the_longest_overdue_goes_first(lone_lab: Lab) -> None:
    lab = lone_lab
    _, claims = lab.running(lab.plan(Spec("first"), Spec("second"), Spec("third")))
    lab.one.advance(*(retry(claims[name], delay_ms=ms) for name, ms in (("third", 30), ("first", 10), ("second", 20))))
    lab.one.set_time(seconds=60)

    started = [promote(lab.one, slots=1, limit=1)["claims"][0]["name"] for _ in range(3)]

    assert started == ["first", "second", "third"]


@pytest.mark.parametrize("room", [0, 1])
def test_a_due_step_is_held_when_the_window_is_full(lone_lab: Lab, room: int) -> None:
    lab = lone_lab
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(retry(claims["s0"], delay_ms=0))

    promote(lab.one, window=room)

    assert lab.states(task) == {"s0": "enqueued" if room else "pending"}
    assert lab.task(task).held == 1 - room
