"""What sweeps, repairs, pauses and polls cost while little or much waits: the same number of pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.engine_fixture import Lab, retry
from tests.support.fleets.work import Work, work_of
from tests.support.random_plans import Spec

FEW, MANY = 40, 600
WHY = {"actor": "ops", "reason": "the provider is down"}
SLICES = {"limit": 10, "steps": 30}


def held(lab: Lab, count: int) -> None:
    lab.window = 0
    lab.submit(lab.chain(4), *({} for _ in range(count)))


def retrying(lab: Lab, count: int) -> None:
    lab.window = 2000
    lab.submit(lab.chain(4, name="retrying"), *({} for _ in range(count)))
    lab.one.advance(*(retry(claim, delay_ms=3_600_000) for claim in lab.one.claim(count)))


def blocked(lab: Lab, count: int) -> None:
    lab.window = 2000
    lab.submit(lab.chain(4, name="blocked"), *({} for _ in range(count)))
    claims = lab.one.claim(count)
    lab.one.advance(*({**retry(claim), "kind": "fail", "d": None} for claim in claims), on_blocked="wait")


def costs(lab: Lab, wait: Callable[[Lab, int], None], call: Callable[[], Any]) -> tuple[Work, Work]:
    """The work of the call while few tasks wait, and while many do."""
    works = []
    lab.submit(lab.plan(Spec("runs"), name="runs"), {}, {}, {})
    lab.one.start_worker(lease_ms=3_600_000)
    assert len(lab.one.claim()) == 3
    lab.one.execute("set enable_seqscan to off")  # as where tables are large
    for more in (FEW, MANY - FEW):
        wait(lab, more)
        call()
        lab.one.execute("vacuum analyze")
        works.append(work_of(lab.one, call))
    return works[0], works[1]


def assert_flat(few: Work, many: Work) -> None:
    """A page for a level that a tree has grown, here and there."""
    assert few.pages > 0
    assert many.pages <= few.pages * 1.2 + 10, (few.pages_of, many.pages_of)


@pytest.mark.parametrize("wait", [held, retrying, blocked])
def test_a_sweep_of_what_is_under_way_reads_nothing_of_what_waits(lone_lab: Lab, wait: Any) -> None:
    lab = lone_lab

    assert_flat(*costs(lab, wait, lambda: lab.one.core("find", {"idle_grace_ms": 3_600_000})))


@pytest.mark.parametrize("wait", [held, retrying])
def test_a_slice_of_what_waits_costs_the_same_however_much_waits(lone_lab: Lab, wait: Any) -> None:
    lab = lone_lab

    def look() -> None:
        assert lab.one.core("find_waiting", SLICES | {"idle_grace_ms": 0}) == {"more": True}

    assert_flat(*costs(lab, wait, look))


def test_the_repair_of_marks_and_counters_costs_the_same_however_much_is_held(lone_lab: Lab) -> None:
    lab = lone_lab

    def mend() -> None:
        assert lab.one.core("mend", {"every_ms": 0, "slice": 10})["repaired"] == {"enqueued_miscounted": 0}

    assert_flat(*costs(lab, held, mend))


def test_pausing_and_resuming_a_namespace_costs_the_same_however_much_is_held(lone_lab: Lab) -> None:
    lab = lone_lab

    def pause_and_resume() -> None:
        assert lab.one.core("pause", {"namespace": lab.namespace, **WHY})["paused"]
        assert lab.one.core("claim", lab.one.args(steps=[])).get("release") is None
        assert lab.one.core("resume", {"namespace": lab.namespace, **WHY})["held"] >= FEW

    assert_flat(*costs(lab, held, pause_and_resume))


def test_a_worker_that_asks_for_its_claims_after_a_lost_connection_reads_nothing_of_what_waits(lone_lab: Lab) -> None:
    lab = lone_lab

    def reconcile() -> None:
        assert len(lab.one.core("reconcile", {"worker": lab.one.worker, "held": []})["items"]) == 3

    assert_flat(*costs(lab, held, reconcile))
