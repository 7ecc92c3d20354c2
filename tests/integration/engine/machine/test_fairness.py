"""Fairness under whatever happens in whatever order: users, two workers, operators, pauses and repairs.

The machine does not predict who is claimed. It counts, for each tenant whose steps wait, what the others got meanwhile:
never more than their share of one round. Within a tenant the most urgent steps go first.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.integration.engine.machine.test_machine import EXAMPLES, PROFILE
from tests.support.engine_fixture import Item, Lab, ok, retry
from tests.support.random_plans import Spec

TENANTS = ("a", "b", "c", "")
WHY = {"actor": "ops", "reason": "why not"}
FAIR = settings(PROFILE, max_examples=max(6, EXAMPLES // 4))
WAITING = """select substr(flow, 2), count(*), max(priority) from tasker.ready_backlog
  where namespace_id = %s and not paused and unserved is null group by 1"""


class Fair(RuleBasedStateMachine):
    """Rules: two workers claim, finish and fail steps of up to four flows with random weights."""

    url: str

    @initialize(weights=st.dictionaries(st.sampled_from("abc"), st.sampled_from([0.5, 1.0, 2.0, 3.0])))
    def begin(self, weights: dict[str, float]) -> None:
        self.lab = Lab(self.url)
        self.workers = [self.lab.one, self.lab.two]
        plan = self.lab.plan(Spec("first"), Spec("last", depends_on=("first",)))
        self.plan = replace(plan, fairness={"key": ["tenant"], "weights": weights, "default": 1.0})
        every = {**dict.fromkeys(TENANTS, 1.0), **weights}
        least = min(1.0, *weights.values()) if weights else 1.0
        self.share = {tenant: math.ceil(weight / least) for tenant, weight in every.items()}
        self.tenant: dict[str, str] = {}
        self.claims: list[Item] = []
        self.passed: dict[str, Counter[str]] = {}

    def _waiting(self) -> dict[str, Any]:
        return {row[0]: row for row in self.lab.observer.rows(WAITING, self.lab.namespace_id)}

    def _changed(self) -> None:
        """Forget what was counted for those of whom nothing waits any more."""
        self.passed = {tenant: self.passed.get(tenant, Counter()) for tenant in self._waiting()}
        broken = self.lab.observer.rows("select * from tasker.violations_v1('{}')")
        assert broken == [], broken

    @precondition(lambda self: len(self.tenant) < 40)
    @rule(tenant=st.sampled_from(TENANTS), count=st.integers(1, 6), priority=st.sampled_from([0, 0, 5]))
    def submit(self, tenant: str, count: int, priority: int) -> None:
        context = {"tenant": tenant} if tenant else {}
        entries = [{"context": context, "priority": priority} for _ in range(count)]
        self.tenant |= dict.fromkeys(self.lab.submit(self.plan, *entries), tenant)
        self._changed()

    @rule(worker=st.integers(0, 1), slots=st.integers(1, 4))
    def claim(self, worker: int, slots: int) -> None:
        before = self._waiting()
        claims = self.workers[worker].take(slots)
        assert len(claims) == min(slots, sum(row[1] for row in before.values())), "no slot stays free"
        taken = Counter(self.tenant[claim["task"]] for claim in claims)
        for tenant in before:
            if tenant in taken:
                self.passed[tenant] = Counter()
                continue
            self.passed[tenant] += taken
            most = {other: self.share[other] for other in self.passed[tenant]}
            assert all(self.passed[tenant][other] <= most[other] for other in most), (tenant, self.passed, most)
        self._first_are_urgent(claims)
        self.claims += claims
        self._changed()

    def _first_are_urgent(self, claims: list[Item]) -> None:
        after = self._waiting()
        priorities = dict(
            self.lab.observer.rows(
                "select task_uuid::text, priority from tasker.tasks where task_uuid = any (%s::uuid[])",
                [claim["task"] for claim in claims],
            )
        )
        for claim in claims:
            if (left := after.get(self.tenant[claim["task"]])) is not None:
                assert priorities[claim["task"]] >= left[2], "a less urgent step of the same tenant was claimed"

    @precondition(lambda self: self.claims)
    @rule(how=st.sampled_from([ok, ok, ok, retry]), slots=st.integers(0, 3))
    def end(self, how: Any, slots: int) -> None:
        claim, waiting = self.claims.pop(0), self._waiting()
        answer = self.lab.one.advance(how(claim), slots=slots, namespace_ids=[self.lab.namespace_id])
        handed_off = answer.get("claims") or []
        assert not handed_off or not waiting.keys() - {self.tenant[claim["task"]]}, "others wait for their turn"
        self.claims += handed_off
        self._changed()

    @precondition(lambda self: self.tenant)
    @rule(data=st.data(), kind=st.sampled_from(["cancel", "pause", "resume"]))
    def operate(self, data: st.DataObject, kind: str) -> None:
        task = data.draw(st.sampled_from(sorted(self.tenant)))
        if kind == "cancel":
            self.lab.one.core("cancel", {"task": task})
            self.claims = [claim for claim in self.claims if claim["task"] != task]
        else:
            self.lab.one.core(kind, {"task": task, **WHY})
        self._changed()

    @rule(seconds=st.sampled_from([0, 2]))
    def keep_time(self, seconds: int) -> None:
        """Retries that are due wait for their turn again, or go to nobody: the caller has no slots."""
        self.lab.two.set_time(seconds)
        self.lab.two.call("due", self.lab.two.args(slots=0))
        self.lab.two.call("repair", {"every_ms": 0, "slice": 1000})
        self._changed()

    def teardown(self) -> None:
        if hasattr(self, "lab"):
            self.lab.close()


@pytest.mark.usefixtures("module_database_url")
def test_no_order_of_events_lets_a_tenant_wait_longer_than_a_round(module_database_url: str) -> None:
    class OnThisDatabase(Fair):
        url = module_database_url

    run_state_machine_as_test(OnThisDatabase, settings=FAIR)
