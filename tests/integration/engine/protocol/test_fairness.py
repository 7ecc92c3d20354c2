"""Steps of a fair namespace are claimed in turn over the flows of their tasks."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from tasker.template.plan import Plan
from tests.support.engine_fixture import Item, Lab
from tests.support.random_plans import Spec


def fair(plan: Plan, default: float = 1.0, **weights: float) -> Plan:
    return replace(plan, fairness={"key": ["tenant"], "weights": weights, "default": default})


def of(tenant: str | None, **entry: Any) -> dict[str, Any]:
    return {"context": {} if tenant is None else {"tenant": tenant}, **entry}


def tenants(lab: Lab, claims: list[Item]) -> list[str | None]:
    """Whose steps these are, in the order of the claims' tasks."""
    rows = lab.observer.rows("select task_uuid::text, context->>'tenant' from tasker.task_details")
    of_task = {row[0]: row[1] for row in rows}
    return [of_task[claim["task"]] for claim in claims]


def test_one_step_of_a_tenant_is_not_behind_the_many_of_another(lab: Lab) -> None:
    plan = fair(lab.chain(1))
    lab.submit(plan, *(of("acme") for _ in range(300)))
    lab.submit(plan, of("bob"))

    assert sorted(tenants(lab, lab.one.take(2))) == ["acme", "bob"]  # type: ignore[type-var]


def test_a_finished_step_lets_another_tenant_have_its_turn(lab: Lab) -> None:
    plan = fair(lab.chain(3))
    first = lab.submit_one(plan, **of("acme"))
    (claim,) = lab.one.take(1)
    lab.submit(plan, of("bob"))

    answer = lab.one.finish(claim, slots=5)

    assert not answer["claims"]
    assert sorted(tenants(lab, lab.one.take(5))) == ["acme", "bob"]  # type: ignore[type-var]
    assert lab.states(first) == {"s0": "complete", "s1": "in_progress", "s2": "pending"}


def test_a_task_goes_on_where_it_runs_while_no_other_tenant_waits(lab: Lab) -> None:
    plan = fair(lab.chain(3))
    lab.submit_one(plan, **of("acme"))
    (claim,) = lab.one.take(1)
    lab.submit(plan, of("acme"))

    assert len(lab.one.finish(claim, slots=5)["claims"]) == 1


def test_tasks_without_the_value_and_of_other_templates_are_one_flow(lab: Lab) -> None:
    plan, other = fair(lab.chain(1)), lab.plan(Spec("s0"), name="other")
    lab.submit(plan, *(of("acme") for _ in range(3)), of(None), of(None))
    lab.submit(other, of("bob"), of("bob"))

    flows = lab.observer.rows("select flow, count(*) from tasker.ready_backlog group by 1 order by 1")
    assert [tuple(row) for row in flows] == [("=", 4), ("=acme", 3)]


def test_priority_orders_the_steps_of_one_tenant(lab: Lab) -> None:
    plan = fair(lab.chain(1))
    lab.submit(plan, of("acme"), of("bob"), of("bob"))
    urgent = lab.submit_one(plan, **of("bob", priority=10))

    claims = lab.one.take(2)

    assert urgent in {claim["task"] for claim in claims}
    assert sorted(tenants(lab, claims)) == ["acme", "bob"]  # type: ignore[type-var]


def test_two_sessions_share_the_turns(lab: Lab) -> None:
    plan = fair(lab.chain(1))
    lab.submit(plan, *(of(tenant) for tenant in "abcdef" for _ in range(3)))

    claims = [*lab.one.take(3), *lab.two.take(3)]

    assert sorted(tenants(lab, claims)) == [*"abcdef"]  # type: ignore[type-var]


def test_steps_held_before_the_namespace_was_fair_have_their_turn(lab: Lab) -> None:
    lab.window = 0
    lab.submit(lab.chain(1), *(of("acme") for _ in range(5)), of("bob"))
    lab.submit(fair(lab.plan(Spec("s0"), name="fair")), of("carl"))

    assert sorted(map(str, tenants(lab, lab.one.take(2)))) in (["acme", "carl"], ["bob", "carl"])


def test_steps_whose_write_did_not_see_it_get_their_flow_from_a_sweep(lab: Lab) -> None:
    plan = fair(lab.chain(1))
    lab.submit(plan, of("acme"))
    lab.one.execute("update tasker.ready_backlog set flow = null, priority = null")
    assert not lab.one.take(1)

    lab.one.call("repair", lab.one.args(every_ms=0))

    assert tenants(lab, lab.one.take(1)) == ["acme"]


def fill(lab: Lab, plan: Plan, flows: dict[str, int]) -> int:
    """Backlog rows of no tasks, as many as that for each flow; the number of the namespace."""
    lab.one.core("register_template", {"hash": plan.hash, "plan": json.loads(plan.to_json())})
    namespace = lab.namespace_id
    for flow, number in flows.items():
        lab.one.execute(
            """insert into tasker.ready_backlog (workflow_step_uuid, task_uuid, namespace_id, rank, priority, flow)
               select gen_random_uuid(), gen_random_uuid(), %s, i, 0, '=' || %s::text from generate_series(1, %s) i""",
            namespace,
            flow,
            number,
        )
    return namespace


def turns(lab: Lab, namespace: int, want: int) -> list[str]:
    """The flows of the next steps, which are taken away."""
    rows = lab.one.rows(
        """with next as materialized (
             select * from unnest(tasker.next_fair(%s, %s, '{}', '{}')) with ordinality as x (step, nth))
           , gone as (delete from tasker.ready_backlog b using next x where b.workflow_step_uuid = x.step
             returning b.flow, x.nth)
           select substr(g.flow, 2) from gone g order by g.nth""",
        namespace,
        want,
    )
    return [row[0] for row in rows]


def test_over_10_000_steps_the_shares_are_those_of_the_weights(lab: Lab) -> None:
    weights = {"acme": 3.0, "bob": 1.0, "cheap": 0.5, "zed": 1.0}
    namespace = fill(lab, fair(lab.chain(1), acme=3.0, cheap=0.5), dict.fromkeys(weights, 6000))
    chance, served = random.Random(7), Counter[str]()

    while served.total() < 10_000:
        served.update(turns(lab, namespace, chance.randint(1, 120)))

    total, sum_of_weights = served.total(), sum(weights.values())
    for flow, weight in weights.items():
        assert served[flow] / total == pytest.approx(weight / sum_of_weights, rel=0.01), served
    lab.one.execute("delete from tasker.ready_backlog")


def test_each_of_1_000_flows_has_its_turn_in_every_round(lab: Lab) -> None:
    namespace = fill(lab, fair(lab.chain(1)), {f"t{number:04}": 3 for number in range(1000)})

    first = [flow for _ in range(10) for flow in turns(lab, namespace, 100)]

    assert sorted(first) == [f"t{number:04}" for number in range(1000)]
    lab.one.execute("delete from tasker.ready_backlog")


def test_a_lone_step_is_served_within_a_round_of_100_000_others(lab: Lab) -> None:
    namespace = fill(lab, fair(lab.chain(1), big=5.0), {"big": 100_000, str(uuid4()): 1})

    assert len(set(turns(lab, namespace, 6))) == 2
    lab.one.execute("truncate tasker.ready_backlog")


def test_a_waiting_step_says_that_its_flow_is_served_in_turn(lab: Lab) -> None:
    lab.one.start_worker()
    plan = fair(lab.chain(1))
    lab.submit(plan, *(of("acme") for _ in range(3)))
    task = lab.submit_one(plan, **of("bob"))

    (group,) = lab.observer.core("explain", {"task": task, "step": None, "results_queue": ""})["groups"]

    assert group["reason"] == "outranked"
    assert (group["values"]["ahead"], group["values"]["flow"]) == (0, "bob")


def test_weights_of_any_size_stop_no_claim(lab: Lab) -> None:
    """The greatest one is 10^13 times the least, and no share of a round that an integer holds."""
    plan = fair(lab.chain(1), acme=0.0000001, bob=1_000_000)
    lab.submit(plan, *(of(tenant) for tenant in ("acme", "bob", "bob", "carl")))

    assert Counter(tenants(lab, lab.one.take(3))) == {"acme": 1, "bob": 2}
    assert tenants(lab, lab.one.take(3)) == ["carl"]
