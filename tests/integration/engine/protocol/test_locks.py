"""Locks of handlers: held by one claim, with a token that grows, and free once the claim or its time is over."""

from __future__ import annotations

from typing import Any

from tests.integration.engine.protocol.test_waits import NOON
from tests.support.engine_fixture import Answer, Item, Lab, Session, ok


def running(lab: Lab) -> Item:
    """The claim of a running step, whose worker has a lease of a year."""
    lab.one.start_worker(365 * 86_400_000)
    _, claims = lab.running(lab.chain(1))
    return claims["s0"]


def take(session: Session, claim: Item, ttl: float = 30, name: str = "customer-7", **more: Any) -> Answer:
    fence = {"worker": session.args()["worker"], "step": claim["step"], "token": claim["token"]}
    return session.core("take_lock", {**fence, "name": name, "ttl_ms": ttl * 1000, **more})


def renew(session: Session, token: int, name: str = "customer-7") -> Answer:
    return session.core("renew_lock", {"name": name, "lock": token, "ttl_ms": 30_000})


def release(session: Session, token: int, name: str = "customer-7") -> Answer:
    return session.core("release_lock", {"name": name, "lock": token})


def test_lock_has_one_holder_and_the_next_a_higher_token(lab: Lab) -> None:
    lab.one.set_time(0, NOON)
    first, second = running(lab), running(lab)
    token = take(lab.one, first)["token"]

    held = take(lab.one, second)["held"]
    assert (held["step"], held["step_name"], held["task"], held["own"]) == (first["step"], "s0", first["task"], False)
    assert take(lab.one, first)["held"]["own"] is True
    assert "token" in take(lab.one, second, name="customer-8")
    assert release(lab.one, token) == {}

    assert take(lab.one, second)["token"] > token


def test_concurrent_takers_wait_for_each_other_and_one_gets_the_lock(lab: Lab) -> None:
    first, second = running(lab), running(lab)
    with lab.transaction(lab.one):
        assert "token" in take(lab.one, first)
        call = lab.later(take, lab.two, second, worker=lab.one.args()["worker"])
        lab.waits(call, lab.two, on=lab.one)

    assert call.result()["held"]["step"] == first["step"]


def test_expired_lock_is_taken_over_and_its_holder_learns_it(lab: Lab) -> None:
    lab.one.set_time(0, NOON)
    first, second = running(lab), running(lab)
    token = take(lab.one, first, ttl=5)["token"]
    lab.one.set_time(6, NOON)

    taken = take(lab.one, second)["token"]

    assert taken > token
    assert renew(lab.one, token) == release(lab.one, token) == {"lost": True}
    assert renew(lab.one, taken) == {"left_ms": 30_000}


def test_expired_lock_that_nobody_took_is_renewed(lab: Lab) -> None:
    lab.one.set_time(0, NOON)
    token = take(lab.one, running(lab), ttl=5)["token"]
    lab.one.set_time(6, NOON)

    assert renew(lab.one, token) == {"left_ms": 30_000}


def test_lock_ends_with_the_claim_of_its_holder(lab: Lab) -> None:
    first, second = running(lab), running(lab)
    token = take(lab.one, first)["token"]
    lab.one.advance(ok(first))

    assert renew(lab.one, token) == {"lost": True}
    assert take(lab.one, first) == {"lost": True}, "a handler that was left behind takes none"
    assert take(lab.one, second)["token"] > token


def test_lock_ends_with_the_lease_of_its_worker(lab: Lab) -> None:
    claim = running(lab)
    token = take(lab.one, claim)["token"]
    lab.observer.execute("update tasker.workers set lease_until = '-infinity'")
    lab.two.start_worker()
    _, claims = lab.running(lab.chain(1, "other"))
    moved = "update tasker.workflow_steps set worker_uuid = %s where workflow_step_uuid = %s"
    lab.observer.execute(moved, lab.two.args()["worker"], claims["s0"]["step"])

    assert renew(lab.one, token) == {"lost": True}
    assert take(lab.two, claims["s0"])["token"] > token


def test_token_grows_after_the_row_was_deleted(lab: Lab) -> None:
    lab.one.set_time(0, NOON)
    claim = running(lab)
    token = take(lab.one, claim)["token"]
    release(lab.one, token)
    assert lab.one.core("prune_locks", {"limit": 10}) == {"deleted": 0}
    lab.one.set_time(8 * 86_400, NOON)

    assert lab.one.core("prune_locks", {"limit": 10}) == {"deleted": 1}

    assert take(lab.one, claim)["token"] > token
