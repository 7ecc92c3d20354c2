"""What may not grow at all, counted in pages: with little and with much that waits, has ended or is served."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tasker.services.tasks.pages import TaskPages
from tests.benchmarks.conditions import Conditions
from tests.benchmarks.growth.case import Prepare, lab_of
from tests.benchmarks.growth.services import queues_of, tasks_of
from tests.benchmarks.growth.wide import wide
from tests.support.engine_fixture import Direct, Lab, fail
from tests.support.fleets.work import work_of
from tests.support.random_plans import Spec

WHY = {"actor": "ops", "reason": "measured"}
AT_ONCE = 1000
LEAST = 100
"""Pages by which a call may differ for a level more of each tree that it reads."""
FACTOR = 1.5
HELD_MOVES = 7
"""Of a task that waits, three of its own and one of each of its four steps."""


@dataclass(frozen=True)
class PageCase:
    """`prepare` fills the lab's database for a size and answers a call that asserts its own work."""

    name: str
    unit: str
    small: int
    large: int
    prepare: Prepare


def held(lab: Lab, count: int) -> None:
    """So many tasks of four steps wait for room; three run on a live worker."""
    lab.submit(lab.plan(Spec("runs"), name="runs"), {}, {}, {})
    lab.one.start_worker(lease_ms=3_600_000)
    assert len(lab.one.claim()) == 3
    lab.window = 0
    for _ in range(0, count, AT_ONCE):
        lab.submit(lab.chain(4), *({} for _ in range(min(count, AT_ONCE))))
    lab.one.execute("vacuum analyze")


def ordered(lab: Lab, count: int) -> None:
    """So many urgent tasks wait in an ordered namespace."""
    for _ in range(0, count, AT_ONCE):
        lab.submit(lab.chain(1), *({"priority": 1} for _ in range(min(count, AT_ONCE))))
    lab.one.execute("vacuum analyze")


def fair(lab: Lab, count: int) -> None:
    """So many tasks of one flow wait, and a few of ten others."""
    plan = replace(lab.chain(1), fairness={"key": ["tenant"], "weights": {}, "default": 1.0})
    for _ in range(0, count, AT_ONCE):
        lab.submit(plan, *({"context": {"tenant": "big"}} for _ in range(min(count, AT_ONCE))))
    lab.submit(plan, *({"context": {"tenant": f"small {number % 10}"}} for number in range(50)))
    lab.one.execute("vacuum analyze")


def ended(lab: Lab, count: int) -> None:
    """So many tasks have run, every row of them as an engine writes it."""
    for _ in range(0, count, AT_ONCE):
        lab.submit(lab.chain(2), *({} for _ in range(min(count, AT_ONCE))))
        while lab.one.run_all(2 * AT_ONCE):
            pass
    assert lab.one.value("select count(*) from tasker.tasks where state = 'complete'") == count
    lab.one.execute("vacuum analyze")


def find(lab: Lab) -> None:
    """The part of a sweep that reads what is under way."""
    assert not lab.one.core("sweep", {"idle_grace_ms": 3_600_000}).get("orphans")


def find_waiting(lab: Lab) -> None:
    """The part of a sweep that reads a slice of all that is open, smaller than the smaller size."""
    lab.one.core("find_waiting", {"limit": 50, "steps": 200})


def mend(lab: Lab) -> None:
    """Marks and held steps of a slice smaller than the smaller size; the counters of all queues."""
    assert lab.one.core("repair", {"every_ms": 0, "slice": 50})["repaired"] == {"enqueued_miscounted": 0}


def pause(lab: Lab) -> None:
    """A pause of a namespace and its end."""
    assert lab.one.core("pause", {"namespace": lab.namespace, **WHY})["paused"]
    assert lab.one.core("resume", {"namespace": lab.namespace, **WHY})["resumed"]


def release(lab: Lab) -> None:
    """Fifty held steps are released."""
    assert lab.one.call("backlog", lab.one.args(window=2000, limit=50))["released"] == 50


def claim(lab: Lab) -> None:
    """Ten steps are claimed from the backlog."""
    assert len(lab.one.call("backlog", lab.one.args(slots=10))["claims"]) == 10


def queues(lab: Lab) -> None:
    """The provider's queues with what should be in them; what is held is in none."""
    found = asyncio.run(queues_of(lab.one).report()).queues
    assert [each.in_database for each in found if each.queue == f"worker_{lab.namespace}_queue"] == [0]


def history(lab: Lab) -> None:
    """Every transition of the task that was submitted last: it and its four steps were created."""
    task = lab.one.value("select task_uuid from tasker.tasks order by task_uuid desc limit 1")
    found = asyncio.run(tasks_of(lab.one).history(str(task)))
    assert len(found) == HELD_MOVES, found


def progress(lab: Lab) -> None:
    """How far that task is."""
    task = lab.one.value("select task_uuid from tasker.tasks order by task_uuid desc limit 1")
    found = asyncio.run(tasks_of(lab.one).progress(str(task)))
    assert (found.total, [step.state for step in found.steps]) == (4, ["pending"] * 4)


def scaling(lab: Lab) -> None:
    """What a fleet needs, from the tasks of an hour, of which at most 2,000 of each template count."""
    (row,) = lab.one.core("scaling", {"window_seconds": 3600})["namespaces"]
    assert row["step_seconds"] is not None


def task_page(lab: Lab, width: int) -> Callable[[], Any]:
    """What the page of a task of so many steps reads: five hundred of them, and one with its inputs."""
    task = wide(lab, width)
    lab.one.execute("vacuum analyze")
    pages, tasks = TaskPages(Direct(lab.one)), tasks_of(lab.one)

    async def read() -> None:
        assert (await pages.counts(task)).total == width + 2
        assert len((await pages.page(task, limit=500, offset=0)).steps) == min(500, width + 2)
        assert len((await pages.step(task, f"s{width // 2:05}", inputs=20)).steps) == 2
        assert not (await pages.first_failure(task)).steps
        assert [each.reason for each in (await tasks.explain(task, f"s{width // 2:05}")).reasons] == ["waits"]
        assert len(await tasks.history_of_steps(task, limit=500)) >= min(500, width)

    return lambda: asyncio.run(read())


def crowd(wait: Callable[[Lab, int], None], call: Callable[[Lab], None]) -> Prepare:
    def prepare(lab: Lab, count: int) -> Callable[[], Any]:
        wait(lab, count)
        return lambda: call(lab)

    return prepare


def replay(lab: Lab, count: int) -> Callable[[], Any]:
    """A slice of a replay of which so many tasks are left."""
    plan = lab.chain(1)
    for _ in range(0, count, AT_ONCE):
        lab.submit(plan, *({} for _ in range(min(count, AT_ONCE))))
        claims = lab.one.claim(AT_ONCE)
        lab.one.advance(*(fail(claim, e={"message": "no", "error_type": "E", "fingerprint": "f"}) for claim in claims))
    begin = {"fingerprint": "f", "rate": 1000, "actor": "ann", "why": "it is back", "limit": count}
    number = lab.one.core("replay_plan", begin)["replay"]
    lab.one.execute("vacuum analyze")
    lab.one.set_time(1)

    def go_on() -> None:
        assert lab.one.call("replay", {"replay": number})["done"] == 100

    return go_on


def idle(lab: Lab, namespaces: int) -> Callable[[], Any]:
    """A claim of a worker that serves so many namespaces, in one of which something is enqueued."""
    names = [lab.namespace, *(f"other_{number:03}" for number in range(namespaces - 1))]
    ids = [lab.one.value("select tasker.namespace_id(%s)", name) for name in names]
    for name in names[1:]:
        lab.one.value("select tasker_pgmq.ensure_queue(%s)", f"worker_{name}_queue")
    lab.submit_one(lab.chain(1))
    asked = json.dumps({**lab.one.args(namespace_ids=ids), "namespaces": names, "slots": 5, "turn": 7})
    lab.one.execute("vacuum analyze")

    def claim() -> None:
        assert len(lab.one.value("select tasker_pgmq.claim_v1(%s::jsonb)", asked)["claims"]) == 1

    return claim


CASES = (
    PageCase("find", "tasks held", 100, 20_000, crowd(held, find)),
    PageCase("find_waiting", "tasks held", 100, 20_000, crowd(held, find_waiting)),
    PageCase("mend", "tasks held", 100, 20_000, crowd(held, mend)),
    PageCase("pause", "tasks held", 100, 20_000, crowd(held, pause)),
    PageCase("release", "tasks held", 100, 20_000, crowd(held, release)),
    PageCase("claim_ordered", "tasks held", 100, 20_000, crowd(ordered, claim)),
    PageCase("claim_in_turn", "tasks held", 100, 20_000, crowd(fair, claim)),
    PageCase("queues", "tasks held", 100, 20_000, crowd(held, queues)),
    PageCase("history", "tasks held", 100, 20_000, crowd(held, history)),
    PageCase("progress", "tasks held", 100, 20_000, crowd(held, progress)),
    PageCase("find_ended", "finished tasks", 3_000, 30_000, crowd(ended, find)),
    PageCase("mend_ended", "finished tasks", 3_000, 30_000, crowd(ended, mend)),
    PageCase("scaling", "finished tasks", 3_000, 30_000, crowd(ended, scaling)),
    PageCase("task_page", "steps", 2_000, 20_000, task_page),
    PageCase("replay", "tasks left of a replay", 300, 3_000, replay),
    PageCase("idle_claim", "namespaces served", 10, 500, idle),
)


def lines(conditions: Conditions, cases: list[PageCase], divide: int) -> Iterator[str]:
    """The table, line by line as it is measured."""
    yield f"{'pages':<16}{'':<26}{'few':>9}{'many':>9}{'pages':>10}{'pages':>10}{'ratio':>8}"
    for case in cases:
        small, large = max(100 if case.small >= 100 else 10, case.small // divide), max(200, case.large // divide)
        few, many = measure(conditions, case, small), measure(conditions, case, large)
        verdict = "" if many <= few * FACTOR + LEAST else "  BEYOND"
        yield (f"{case.name:<16}{case.unit:<26}{small:>9,}{large:>9,}{few:>10,}{many:>10,}{many / few:>8.1f}{verdict}")


def measure(conditions: Conditions, case: PageCase, size: int) -> int:
    """The pages of tables and indexes that the call visits, on a database of its own."""
    with conditions.database("tasker_growth") as url:
        lab = lab_of(url)
        try:
            return work_of(lab.one, case.prepare(lab, size)).pages
        finally:
            lab.close()
