"""Rates: as many attempts begin in a time as the template says, whoever runs them, and none is saved up for long."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tasker.template.plan import Plan
from tests.integration.engine.protocol.test_delays import due
from tests.integration.engine.protocol.test_limits import permits, waiting
from tests.support.engine_fixture import Item, Lab, retry
from tests.support.random_plans import Spec

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TENANT = {"input": ["tenant"]}


@pytest.fixture(autouse=True)
def _no_violation_of_the_fleet(lab: Lab) -> Iterator[None]:
    yield
    assert lab.observer.rows("select * from tasker.violations_v1('{}')") == []


def rated(lab: Lab, rate: float, burst: float = 1, key: Any = TENANT, **more: Any) -> Plan:
    rule = {"name": f"rate step {lab.namespace}/rated/a", "key": key, "rate": rate, "burst": burst}
    return lab.plan(Spec("a", limits=(rule, *more.pop("others", ())), **more), name="rated")


def submit(lab: Lab, plan: Plan, count: int, tenant: str = "t") -> list[str]:
    return lab.submit(plan, *({"context": {"tenant": tenant}} for _ in range(count)))


def at(lab: Lab, seconds: float) -> None:
    """So many seconds after noon, for every session: no time passes meanwhile."""
    for session in (lab.one, lab.two, lab.observer):
        session.execute("select set_config('tasker.now', %s, false)", (NOON + timedelta(seconds=seconds)).isoformat())


def begun(lab: Lab, seconds: float) -> int:
    """Attempts that begin at that time."""
    at(lab, seconds)
    due(lab.one)
    return len(lab.two.claim(10_000))


def test_a_burst_begins_at_once_and_the_rest_at_the_rate(lab: Lab) -> None:
    at(lab, 0)
    submit(lab, rated(lab, 10, 3), 20)

    assert [begun(lab, n / 10) for n in range(6)] == [3, 1, 1, 1, 1, 1]


def test_the_timekeeper_knows_when_the_next_token_comes(lab: Lab) -> None:
    at(lab, 0)
    submit(lab, rated(lab, 0.5), 3)

    assert due(lab.one)["next_due_ms"] == 2000
    lab.one.claim()
    at(lab, 2)
    assert due(lab.one)["next_due_ms"] == 2000


@pytest.mark.parametrize("rate", [1.0, 25.0])
def test_a_minute_has_as_many_attempts_as_the_rate_says(lab: Lab, rate: float) -> None:
    """Looks come late, as on a busy fleet: up to a tenth of a second."""
    at(lab, 0)
    count = int(rate * 60)
    for _ in range(0, count + 200, 1000):
        submit(lab, rated(lab, rate, 1 + rate / 4), min(count + 200, 1000))
    for _ in range(8):
        due(lab.one, limit=1000)
    first = len(lab.two.claim(10_000))
    looks = [n * 0.1 + (n * 37 % 10) / 100 for n in range(1, 600)]

    total = first + sum(begun(lab, look) for look in looks)

    assert abs(total - count) <= max(0.02 * count, 1 + rate / 4), (total, count)


def test_values_of_the_key_have_rates_of_their_own(lab: Lab) -> None:
    at(lab, 0)
    plan = rated(lab, 1)
    submit(lab, plan, 3, "t")
    submit(lab, plan, 3, "u")

    assert [begun(lab, second) for second in (0, 1, 2)] == [2, 2, 2]


def test_an_outage_saves_up_no_more_than_a_burst(lab: Lab) -> None:
    at(lab, 0)
    submit(lab, rated(lab, 10, 2), 50)
    for second in range(60):  # nobody claims
        at(lab, second)
        due(lab.one)

    assert permits(lab) == [("t", 2)]
    assert len(lab.two.claim(100)) == 2
    assert begun(lab, 60) == 2
    assert begun(lab, 60.1) == 1


def test_each_attempt_takes_a_token(lab: Lab) -> None:
    at(lab, 0)
    submit(lab, rated(lab, 1), 2)
    due(lab.one)
    (claim,) = lab.two.claim()
    lab.one.advance(retry(claim, delay_ms=0), w=claim["worker"])
    due(lab.one)

    assert [begun(lab, second) for second in (0.5, 1, 1.5, 2, 3)] == [0, 1, 0, 1, 0]


def test_a_claim_ends_the_permit_and_the_step_goes_on_without_it(lab: Lab) -> None:
    at(lab, 0)
    submit(lab, rated(lab, 1), 1)
    due(lab.one)
    assert permits(lab) == [("t", 1)]

    (claim,) = lab.one.claim()

    assert permits(lab) == []
    lab.one.advance({"s": claim["step"], "t": claim["task"], "k": claim["token"], "kind": "release"})
    (claim,) = lab.one.claim()
    lab.one.finish(claim)
    assert waiting(lab) == []


def test_a_step_that_is_handed_off_needs_no_permit_any_more(lab: Lab) -> None:
    at(lab, 0)
    submit(lab, rated(lab, 1), 1)

    (claim,) = due(lab.one, slots=3)["claims"]

    assert permits(lab) == []
    lab.one.finish(claim)


def both(lab: Lab) -> Plan:
    other: Item = {"name": "both", "key": None, "max_running": 1}
    return rated(lab, 1, 2, others=(other,))


def test_a_step_with_two_limits_gets_both_or_waits_for_the_full_one(lab: Lab) -> None:
    at(lab, 0)
    submit(lab, both(lab), 3)
    due(lab.one)
    (claim,) = lab.one.claim()

    assert permits(lab) == [("", 1)]
    assert waiting(lab) == [("", 2)], "they wait for the one that is full"

    lab.one.finish(claim)
    (claim,) = lab.one.claim()
    lab.one.finish(claim)
    assert lab.one.claim() == []
    assert waiting(lab) == [("t", 1)], "both tokens are used"
    assert begun(lab, 1) == 1


def test_a_step_with_two_limits_uses_no_token_while_it_waits_for_the_other(lab: Lab) -> None:
    at(lab, 0)
    submit(lab, both(lab), 3)
    due(lab.one)
    lab.one.claim()

    for second in range(5):
        at(lab, second)
        due(lab.one)

    assert lab.observer.value("select count(*) from tasker.limit_buckets where full_at > tasker.now()") <= 1
    assert permits(lab) == [("", 1)]


def test_a_key_that_another_transaction_has_is_not_waited_for(lab: Lab) -> None:
    at(lab, 0)
    submit(lab, both(lab), 1)

    with lab.transaction(lab.two):
        lab.two.execute(
            "select pg_advisory_xact_lock(tasker.limit_lock(rule_id, '')) from tasker.limit_rules where name = 'both'"
        )
        lab.one.execute("set lock_timeout = '1s'")
        assert due(lab.one)["passed_over"]
        lab.one.execute("reset lock_timeout")

    due(lab.one)
    assert len(lab.one.claim()) == 1


def test_used_tokens_are_forgotten_when_they_are_back(lab: Lab) -> None:
    at(lab, 0)
    submit(lab, rated(lab, 1), 1)
    due(lab.one)
    lab.one.finish(*lab.one.claim())

    at(lab, 120)
    lab.one.core("repair", {"begin": True})

    assert lab.observer.rows("select * from tasker.limit_buckets") == []
