"""Named limits: numbers from configurations, shared by all templates that name them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tasker.template.plan import Plan
from tests.integration.engine.protocol.test_delays import due
from tests.integration.engine.protocol.test_limits import permits, waiting
from tests.integration.engine.protocol.test_rates import at, begun
from tests.support.engine_fixture import Lab, ok, retry
from tests.support.random_plans import Spec

OLD = datetime(2026, 1, 1, tzinfo=UTC)
TENANT = {"input": ["tenant"]}


@pytest.fixture(autouse=True)
def _no_violation_of_the_fleet(lab: Lab) -> Iterator[None]:
    yield
    assert lab.observer.rows("select * from tasker.violations_v1('{}')") == []


def declare(lab: Lab, name: str = "payments", days: int = 0, **numbers: Any) -> dict[str, Any]:
    """Numbers from a file that was changed so many days after the first one."""
    limit = {"name": name, "concurrency": None, "rate": None, "burst": None, **numbers}
    return lab.one.core("declare_limits", {"changed_at": (OLD + timedelta(days=days)).isoformat(), "limits": [limit]})


def using(lab: Lab, *names: str, template: str = "buyer", key: Any = None) -> Plan:
    return lab.plan(Spec("a", limits=tuple({"name": name, "key": key} for name in names)), name=template)


def submit(lab: Lab, plan: Plan, count: int, tenant: str = "t") -> list[str]:
    return lab.submit(plan, *({"context": {"tenant": tenant}} for _ in range(count)))


def test_templates_share_a_named_limit(lab: Lab) -> None:
    declare(lab, concurrency=2)
    submit(lab, using(lab, "payments", template="buyer"), 2)
    submit(lab, using(lab, "payments", template="refund"), 2)
    due(lab.one)

    first = lab.one.claim()
    assert len(first) == 2
    lab.one.finish(*first)

    assert len(lab.one.claim()) == 2
    assert permits(lab) == [("", 2)]


def test_a_template_with_an_unknown_limit_is_refused_and_leaves_nothing(lab: Lab) -> None:
    declare(lab, concurrency=2)
    plan = using(lab, "paymnts")

    answer = lab.one.core("register_template", {"hash": plan.hash, "plan": plan_json(plan)})

    assert answer == {"unknown_limits": ["paymnts"], "known_limits": ["payments"]}
    assert lab.observer.rows("select name from tasker.limit_rules") == [("payments",)]
    assert lab.observer.rows("select from tasker.named_tasks where name = 'buyer'") == []


def test_a_raised_limit_lets_those_that_wait_begin_at_once(lab: Lab) -> None:
    declare(lab, concurrency=1)
    submit(lab, using(lab, "payments"), 4)
    due(lab.one)
    assert len(lab.one.claim()) == 1

    declare(lab, days=1, concurrency=3)
    due(lab.one)

    assert len(lab.one.claim()) == 2
    assert waiting(lab) == [("", 1)]


def test_the_newest_file_wins_and_an_older_one_is_logged(lab: Lab) -> None:
    declare(lab, days=2, concurrency=3)

    older = declare(lab, days=1, concurrency=1)
    assert older["differing"] == [{"name": "payments", "concurrency": 3, "rate": None, "burst": None}]
    assert numbers(lab) == (3, None)
    assert declare(lab, days=2, rate=5.0, burst=2.0)["differing"] == []  # of files of one age the last one read
    assert numbers(lab) == (None, 5.0)


def test_a_limit_of_both_kinds_keeps_its_number_and_its_rate(lab: Lab) -> None:
    at(lab, 0)
    declare(lab, concurrency=3, rate=2.0, burst=2.0)
    submit(lab, using(lab, "payments"), 6)

    assert begun(lab, 0) == 2  # the burst
    assert begun(lab, 0.5) == 1  # a token
    assert begun(lab, 10) == 0  # three run
    assert permits(lab) == [("", 3)]


def test_a_full_limit_of_both_kinds_is_looked_at_only_when_a_step_ends(lab: Lab) -> None:
    at(lab, 0)
    declare(lab, concurrency=1, rate=10.0, burst=2.0)
    submit(lab, using(lab, "payments"), 2)
    due(lab.one)
    (running,) = lab.one.claim()
    at(lab, 60)
    due(lab.one)

    assert lab.observer.rows("select from tasker.limit_notes") == []
    lab.one.advance(ok(running))
    assert len(lab.one.claim()) == 1


def test_each_attempt_uses_a_token_of_a_limit_of_both_kinds(lab: Lab) -> None:
    at(lab, 0)
    declare(lab, concurrency=5, rate=1.0, burst=1.0)
    submit(lab, using(lab, "payments"), 1)
    due(lab.one)
    (running,) = lab.one.claim()
    lab.one.advance(retry(running, 10))

    at(lab, 0.5)
    due(lab.one)
    assert lab.one.claim() == []
    assert begun(lab, 1) == 1


def test_steps_of_a_worker_that_finishes_are_handed_on_with_their_permits(lab: Lab) -> None:
    at(lab, 0)
    declare(lab, concurrency=1, rate=10.0, burst=5.0)
    submit(lab, using(lab, "payments"), 2)
    due(lab.one)
    (running,) = lab.one.claim()

    assert len(lab.one.advance(ok(running), slots=1)["claims"]) == 1
    assert lab.observer.rows("select claimed from tasker.limit_permits") == [(True,)]


@pytest.mark.parametrize("most", [None, 10])
def test_steps_claimed_from_the_backlog_are_no_longer_unclaimed(lab: Lab, most: int | None) -> None:
    at(lab, 0)
    lab.window = 1
    declare(lab, concurrency=most, rate=10.0, burst=3.0)
    submit(lab, using(lab, "payments"), 3)
    due(lab.one)
    lab.one.claim()

    assert lab.one.call("backlog", lab.one.args(slots=2))["claims"]
    unclaimed = "select from tasker.limit_permits p join tasker.workflow_steps s on s.workflow_step_uuid = p.subject"
    assert lab.observer.rows(f"{unclaimed} where not p.claimed and s.state = 'in_progress'") == []


def test_a_limit_that_gains_a_number_counts_what_begins_from_then_on(lab: Lab) -> None:
    at(lab, 0)
    declare(lab, rate=10.0, burst=5.0)
    submit(lab, using(lab, "payments"), 4)
    due(lab.one)
    running = lab.one.claim(2)
    at(lab, 1)
    declare(lab, days=1, concurrency=1, rate=10.0, burst=5.0)

    lab.one.finish(*running)
    due(lab.one)
    assert permits(lab) == [("", 2)]  # granted before
    lab.one.finish(*lab.one.claim())
    assert permits(lab) == []


def test_a_raised_rate_gives_tokens_back_sooner(lab: Lab) -> None:
    at(lab, 0)
    declare(lab, rate=0.01, burst=1.0)
    submit(lab, using(lab, "payments"), 2)
    assert begun(lab, 0) == 1

    declare(lab, days=1, rate=10.0, burst=1.0)

    assert begun(lab, 0.05) == 0
    assert begun(lab, 0.1) == 1


def test_a_client_transaction_with_a_limit_blocks_no_other(lab: Lab) -> None:
    declare(lab, concurrency=1)
    plan = using(lab, "payments")
    submit(lab, plan, 1)
    with lab.two.connection.transaction():
        lab.two.submit(plan, {"context": {"tenant": "t"}})
        lab.one.execute("set lock_timeout = '100ms'")
        declare(lab, days=1, concurrency=2)
        due(lab.one)
        assert len(lab.one.claim()) == 1
    due(lab.one)
    assert len(lab.one.claim()) == 1


def test_a_step_with_two_named_limits_holds_none_while_it_waits(lab: Lab) -> None:
    declare(lab, "mail", concurrency=1)
    declare(lab, "payments", concurrency=1)
    submit(lab, using(lab, "payments", template="payer"), 1)
    due(lab.one)
    (payer,) = lab.one.claim()
    submit(lab, using(lab, "mail", "payments", template="both"), 1)
    due(lab.one)

    assert permits(lab) == [("", 1)]
    submit(lab, using(lab, "mail", template="mailer"), 1)
    due(lab.one)
    (mailer,) = lab.one.claim()
    lab.one.finish(payer, mailer)
    due(lab.one)
    assert len(lab.one.claim()) == 1
    assert permits(lab) == [("", 2)]


def numbers(lab: Lab) -> tuple[Any, Any]:
    ((most, rate),) = lab.observer.rows("select max_running, rate from tasker.limit_rules where name = 'payments'")
    return most, rate


def plan_json(plan: Plan) -> Any:
    import json

    return json.loads(plan.to_json())
