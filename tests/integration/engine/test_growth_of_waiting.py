"""What sweeps, repairs, pauses and polls cost while little or much waits: the same number of pages."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.engine_fixture import Lab, fail, ok, retry
from tests.support.fleets.work import Work, work_of
from tests.support.random_plans import Spec

FEW, MANY = 40, 600
GROWTH = (100, int(os.environ.get("TASKER_WAITERS", "3000")))
"""Steps that wait for the permits of one key; `TASKER_WAITERS=50000` takes minutes."""
WHY = {"actor": "ops", "reason": "the provider is down"}
SLICES = {"limit": 10, "steps": 30}


def held(lab: Lab, count: int) -> None:
    lab.window = 0
    lab.submit(lab.chain(4), *({} for _ in range(count)))


def retrying(lab: Lab, count: int) -> None:
    lab.window = 2000
    lab.submit(lab.chain(4, name="retrying"), *({} for _ in range(count)))
    lab.one.advance(*(retry(claim, delay_ms=3_600_000) for claim in lab.one.claim(count)))


def delayed(lab: Lab, count: int) -> None:
    lab.window = 2000
    lab.submit(lab.chain(4, name="delayed"), *({"delay_ms": 3_600_000} for _ in range(count)))


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


def of(work: Work, *begins: str) -> Work:
    """Of the tables and indexes whose names begin so."""
    return Work({name: pages for name, pages in work.pages_of.items() if name.startswith(begins)})


@pytest.mark.parametrize("wait", [held, retrying, delayed, blocked])
def test_a_sweep_of_what_is_under_way_reads_nothing_of_what_waits(lone_lab: Lab, wait: Any) -> None:
    lab = lone_lab

    assert_flat(*costs(lab, wait, lambda: lab.one.core("sweep", {"idle_grace_ms": 3_600_000})))


@pytest.mark.parametrize("wait", [held, retrying, delayed])
def test_a_slice_of_what_waits_costs_the_same_however_much_waits(lone_lab: Lab, wait: Any) -> None:
    lab = lone_lab

    def look() -> None:
        assert lab.one.core("find_waiting", SLICES | {"idle_grace_ms": 0}) == {"more": True}

    assert_flat(*costs(lab, wait, look))


@pytest.mark.parametrize("wait", [retrying, delayed])
def test_a_look_for_due_steps_costs_the_same_however_many_are_due_later(lone_lab: Lab, wait: Any) -> None:
    lab = lone_lab
    of_each = {"turn_ms": 4000, "late_ms": 250}

    def look() -> None:
        assert lab.one.core("due", lab.one.args(**of_each))["next_due_ms"] > 3_000_000

    assert_flat(*costs(lab, wait, look))


def test_what_wakes_up_costs_the_same_however_many_wait_longer(lone_lab: Lab) -> None:
    """One delayed task that is due, of few and of many."""
    lab = lone_lab
    lab.one.execute("set enable_seqscan to off")  # as where tables are large
    works = []
    for more in (100, 5000):
        for _ in range(more // 500 or 1):
            delayed(lab, min(more, 500))
        (task,) = lab.submit(lab.chain(4, name="delayed"), {"delay_ms": 600_000})
        lab.one.execute("vacuum analyze")
        lab.one.set_time(700)
        works.append(work_of(lab.one, lambda: lab.one.call("due", lab.one.args(turn_ms=4000))))
        lab.one.set_time(0)
        assert lab.states(task)["s0"] == "enqueued"

    assert_flat(*works)


@pytest.mark.parametrize("what", ["sweep", "repair", "pause", "depth", "release"])
def test_nothing_else_sees_what_waits_for_its_time(lone_lab: Lab, what: str) -> None:
    lab = lone_lab
    lab.submit(lab.plan(Spec("runs"), name="runs"), {}, {}, {})
    lab.one.start_worker(lease_ms=3_600_000)
    assert len(lab.one.claim()) == 3
    lab.one.execute("set enable_seqscan to off")  # as where tables are large

    def pause_and_resume() -> None:
        for which in ({}, {"template": "delayed"}):
            assert lab.one.core("pause", {"namespace": lab.namespace, **which, **WHY})["paused"]
            assert lab.one.core("resume", {"namespace": lab.namespace, **which, **WHY})["resumed"]

    calls: dict[str, Callable[[], Any]] = {
        "sweep": lambda: lab.one.core("sweep", {"idle_grace_ms": 0}),
        "repair": lambda: lab.one.core("repair", {"every_ms": 0}),
        "pause": pause_and_resume,
        "depth": lambda: lab.one.core("depth", {"namespace": lab.namespace}),
        "release": lambda: lab.one.core("backlog", lab.one.args()),
    }
    works = []
    for more in (100, 5000):
        for _ in range(more // 500 or 1):
            delayed(lab, min(more, 500))
        calls[what]()
        lab.one.execute("vacuum analyze")
        works.append(work_of(lab.one, calls[what]))

    few, many = works
    assert many.pages <= few.pages + 12, (few.pages_of, many.pages_of)


def test_the_repair_of_marks_and_counters_costs_the_same_however_much_is_held(lone_lab: Lab) -> None:
    lab = lone_lab

    def mend() -> None:
        assert lab.one.core("repair", {"every_ms": 0, "slice": 10})["repaired"] == {"enqueued_miscounted": 0}

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


def test_a_slice_of_a_replay_costs_the_same_however_much_of_it_is_left(lone_lab: Lab) -> None:
    """A hundred tasks each time, of 200 and of 800."""
    lab = lone_lab
    lab.one.execute("set enable_seqscan to off")  # as where tables are large

    def replay(count: int) -> Work:
        lab.submit(lab.chain(1), *({} for _ in range(count)))
        error = {"message": "no", "error_type": "E", "fingerprint": f"f{count}"}
        lab.one.advance(*(fail(claim, e=error) for claim in lab.one.claim(count)))
        begin = {"fingerprint": f"f{count}", "rate": 1000, "actor": "ann", "why": "it is back", "limit": 1000}
        number = lab.one.core("replay_plan", begin)["replay"]
        lab.one.execute("vacuum analyze")
        lab.one.set_time(1)
        answer: dict[str, Any] = {}
        work = work_of(lab.one, lambda: answer.update(lab.one.call("replay", {"replay": number})))
        lab.one.set_time(0)
        assert (answer["done"], answer["left"]) == (100, count - 100)
        lab.one.finish(*lab.one.claim(count))
        return of(work, "tasks", "dlq_replay_items")

    assert_flat(replay(200), replay(800))


def test_what_a_fleet_needs_is_read_from_the_newest_tasks_alone(lone_lab: Lab) -> None:
    """Of at most 20 of a template how long their steps ran."""
    lab = lone_lab

    def scaling(count: int) -> Work:
        lab.submit(lab.chain(2), *({} for _ in range(count)))
        while lab.one.run_all(1000):
            pass
        lab.one.execute("vacuum analyze")
        return of(work_of(lab.one, lambda: lab.one.core("scaling", {"window_seconds": 3600})), "workflow_", "step_")

    assert_flat(scaling(100), scaling(900))


def test_an_idle_worker_of_many_namespaces_asks_where_there_is_work(lone_lab: Lab) -> None:
    """And each time one more, so that a hint that no counter knows of is found as well."""
    lab = lone_lab
    tasks = [lab.submit_one(lab.plan(Spec("a"), name=f"flow{n}")) for n in range(2)]
    lab.one.run_all()
    names = [lab.namespace]

    def serve(count: int) -> Work:
        for number in range(len(names), count):
            names.append(name := f"other_{number:03}")
            lab.one.value("select tasker.namespace_id(%s)", name)
            lab.one.value("select tasker_pgmq.ensure_queue(%s)", f"worker_{name}_queue")
        ids = [lab.one.value("select tasker.namespace_id(%s)", name) for name in names]
        asked = {**lab.one.args(namespace_ids=ids), "namespaces": names, "slots": 5, "turn": 1}
        lab.one.value("select tasker_pgmq.claim_v1(%s::jsonb)", json.dumps(asked))
        lab.one.execute("vacuum analyze")
        return work_of(lab.one, lambda: lab.one.value("select tasker_pgmq.claim_v1(%s::jsonb)", json.dumps(asked)))

    few, many = serve(10), serve(80)
    assert many.pages <= few.pages + 40, (few.pages_of, many.pages_of)
    (task,) = lab.submit(lab.plan(Spec("a"), name="flow0"), {})
    assert [claim["task"] for claim in lab.one.claim(namespaces=names)] == [task]
    assert {lab.task(each).state for each in tasks} == {"complete"}
    lab.one.finish(*lab.running_claims(task).values())


LIMIT = {"name": "of a customer", "key": {"input": ["customer"]}, "max_running": 3}


def limited(lab: Lab, count: int, customer: str = "busy") -> None:
    """So many tasks of one customer more, whose first steps wait for permits."""
    plan = lab.plan(Spec("a", limits=(LIMIT,)), Spec("b", depends_on=("a",)), name="limited")
    for first in range(0, count, 5000):
        lab.submit(plan, *({"context": {"customer": customer}} for _ in range(min(5000, count - first))))
    while lab.one.call("due", lab.one.args(limit=1000)).get("promoted"):
        pass


@pytest.mark.parametrize("what", ["same key", "other key", "plain", "sweep", "repair", "depth", "backlog", "due"])
def test_steps_that_wait_for_a_permit_cost_others_nothing(lone_lab: Lab, what: str) -> None:
    """Few and many wait for the permits of one key; a step of it, of another key, or without any key goes its way."""
    lab = lone_lab
    limited(lab, 3)
    plan = lab.plan(Spec("a", limits=(LIMIT,)), Spec("b", depends_on=("a",)), name="limited")
    lab.one.execute("set enable_seqscan to off")  # as where tables are large

    holders = lab.one.claim(3)

    def same_key() -> None:
        lab.one.advance(ok(holders.pop()))
        holders.extend(claim for claim in lab.one.claim(2) if claim["name"] == "a")

    def other_key() -> None:
        lab.submit(plan, {"context": {"customer": "quiet"}})
        lab.one.call("due", lab.one.args())
        lab.one.finish(*lab.one.claim(1))
        lab.one.finish(*lab.one.claim(1))

    def plain() -> None:
        lab.submit(lab.chain(2, name="plain"))
        (claim,) = lab.one.claim(1)
        lab.one.finish(claim, slots=4)

    calls: dict[str, Callable[[], Any]] = {
        "same key": same_key,
        "other key": other_key,
        "plain": plain,
        "sweep": lambda: lab.one.core("sweep", {"idle_grace_ms": 0}),
        "repair": lambda: lab.one.core("repair", {"every_ms": 0}),
        "depth": lambda: lab.one.core("depth", {"namespace": lab.namespace}),
        "backlog": lambda: lab.one.call("backlog", lab.one.args()),
        "due": lambda: lab.one.call("due", lab.one.args()),
    }
    works = []
    for more in GROWTH:
        limited(lab, more)
        calls[what]()
        lab.one.execute("vacuum analyze")
        works.append(work_of(lab.one, calls[what]))

    assert len(holders) == 3
    assert_flat(*works)
    few, many = (of(work, "limit_waiters").pages for work in works)
    assert many <= few + 12, "a whole index would be more"
