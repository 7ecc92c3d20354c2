"""What is read while many tasks have finished: pages that a call visits among a few tasks and among ten times as many.

Pages, not times: the same on every machine. `make bench-growth ARGS="--only finished"`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tasker.db.sql_files import query
from tasker.services.fleet.doctor import Checks, Doctor
from tasker.services.tasks.lists import TaskFilter, TaskLists
from tests.benchmarks.conditions import Conditions
from tests.benchmarks.growth.case import lab_of
from tests.benchmarks.growth.services import engine_of, letters_of, queues_of, tasks_of
from tests.support.copies import copy_task
from tests.support.engine_fixture import Direct, Lab, fail, ok, retry
from tests.support.fleets.work import Work, work_of
from tests.support.random_plans import Spec

FEW, MANY = 3_000, 30_000
EVENT = {"name": "paid", "condition": "always", "delivery_mode": "durable"}
COUNTED = 20
"""To so many tasks of a list are counted: no more than match in the smaller case."""
GROWING = 2.0
"""By what a call may read more among ten times as many tasks: trees grow a level."""
SCATTERED = 2.5
"""The same of one that reads a sample, or, for each task, of one that reads all."""
LATER = {"tasks_dlq.dlq_timestamp": "x.dlq_timestamp + c.n * interval '1 second'"}
"""Copies of a dead letter did not fail at one moment."""


@dataclass(frozen=True)
class Scene:
    """A database in which `lab` ran a few tasks and copied them: one that is complete and one that failed."""

    lab: Lab
    complete: str
    failed: str

    @classmethod
    def of(cls, lab: Lab, finished: int) -> Scene:
        """Run the two, copy them; one in ten failed, as in a bad week."""
        specs = (Spec("a", publishes=(EVENT,)), Spec("b", depends_on=("a",)), Spec("c", depends_on=("a",)))
        plan = lab.plan(*specs, Spec("d", depends_on=("b", "c"), publishes=(EVENT,)), name="diamond")
        ids = []
        for end in (ok, fail):
            task, claims = lab.running(plan, tags=["web"], initiator="shop", source_system="shop")
            lab.one.advance(retry(claims["a"], delay_ms=0), events=True)
            lab.one.call("due", lab.one.args())
            while held := lab.one.claim():
                lab.one.advance(*((end if step["name"] == "d" else ok)(step) for step in held), events=True)
            ids.append(task)
        scene = cls(lab, *ids)
        copy_task(lab.one, scene.complete, finished - finished // 10)
        copy_task(lab.one, scene.failed, finished // 10, LATER)
        place_events(scene)
        lab.one.execute("vacuum analyze")
        lab.one.execute("set enable_seqscan to off")  # as where tables are large
        return scene

    @property
    def direct(self) -> Direct:
        return Direct(self.lab.one)

    def work(self, call: Callable[[Scene], Any]) -> Work:
        return work_of(self.lab.one, lambda: call(self))


def statement(file: str, name: str, **params: Any) -> Callable[[Scene], Any]:
    """A query about the task that is complete."""
    return lambda scene: scene.lab.one.connection.execute(
        query(file, name).encode(), {"task": scene.complete, **params}
    ).fetchall()


def listed(rows: int = 0, **which: Any) -> Callable[[Scene], Any]:
    """A part of a list and the number beside it."""

    def ask(scene: Scene) -> None:
        lists = TaskLists(scene.direct)
        part = asyncio.run(lists.part(TaskFilter(**which), limit=20))
        assert len(part.tasks) == rows
        assert min(asyncio.run(lists.count(TaskFilter(**which), COUNTED)), 20) == rows

    return ask


def events(number: int, **which: Any) -> Callable[[Scene], Any]:
    """A page of so many events; `task`: only those of the task that is complete."""

    def ask(scene: Scene) -> None:
        about = {"task": scene.complete} if which.get("task") else {}
        assert len(scene.lab.one.core("events", {"limit": 20, **which, **about})["events"]) == number

    return ask


def place_events(scene: Scene) -> None:
    """As sweeps do."""
    while not scene.lab.one.core("place_events", {})["over"]:
        pass


def doctor(scene: Scene) -> None:
    assert not [each for each in asyncio.run(Doctor(engine_of(scene.lab.one), 2000, 100).findings()) if each.wrong]


def check(scene: Scene) -> None:
    assert not asyncio.run(Checks(engine_of(scene.lab.one)).run())


def dead_letters(scene: Scene) -> None:
    letters = letters_of(scene.lab.one)
    assert len(asyncio.run(letters.list(limit=20))) == 20
    assert len(asyncio.run(letters.queue(limit=20))) == 20


def queues(scene: Scene) -> None:
    """The provider's queues with what should be in them."""
    found = asyncio.run(queues_of(scene.lab.one).report()).queues
    assert [each.in_database for each in found if each.queue == f"worker_{scene.lab.namespace}_queue"] == [0]


def history(scene: Scene) -> None:
    """Every transition of a task of four steps."""
    assert len(asyncio.run(tasks_of(scene.lab.one).history(scene.complete))) > 16


def progress(scene: Scene) -> None:
    """How far a task of four steps is."""
    assert len(asyncio.run(tasks_of(scene.lab.one).progress(scene.complete)).steps) == 4


FLAT: dict[str, Callable[[Scene], Any]] = {
    "audit of a task": statement("client", "audit", step=None),
    "history of a task": history,
    "progress of a task": progress,
    "queues": queues,
    "events of a task": events(3, task=True),
    "newest events": events(20, newest=True),
    "events withheld": events(0, withheld=True),
    "events of nobody's name": events(0, names=["nobody"]),
    "events of another namespace": events(0, namespaces=["elsewhere"]),
    "dead letters": dead_letters,
    "list cancelled": listed(status="cancelled"),
    "list resolved_manually": listed(status="resolved_manually"),
    "list a tag that no task has": listed(tags=["wbe"]),
    "list two tags, never together": listed(tags=["web", "rare"]),
    "list error and a tag": listed(status="error", tags=["rare"]),
    "list error and an initiator": listed(status="error", initiator="rare"),
}
"""What reads no more however many tasks have finished."""
BOUNDED: dict[str, Callable[[Scene], Any]] = {
    "list error and a common tag": listed(20, status="error", tags=["web"]),
    "list error and common initiator": listed(20, status="error", initiator="shop"),
}
"""What reads at most so many tasks, and all where there are few: at most `MOST` pages."""
MOST = 1_000
SAMPLES: dict[str, Callable[[Scene], Any]] = {"doctor": doctor}
"""What reads the newest and some of any age, which lie side by side where there are few."""
EACH: dict[str, Callable[[Scene], Any]] = {"db check": check}
"""What reads every task: pages by task."""


def lines(conditions: Conditions, few: int = FEW, many: int = MANY) -> Iterator[str]:
    """The table, line by line."""
    yield f"{'pages':<34}{few:>11,}{many:>11,} finished tasks"
    small, large = _measured(conditions, few), _measured(conditions, many)
    for name in (*FLAT, *BOUNDED, *SAMPLES, *EACH):
        bound = small[name] * GROWING + 20 if name in FLAT else MOST if name in BOUNDED else small[name] * SCATTERED
        verdict = "" if large[name] <= bound else "  BEYOND"
        yield f"{name:<34}{small[name]:>11,.1f}{large[name]:>11,.1f}{verdict}"


def _measured(conditions: Conditions, finished: int) -> dict[str, float]:
    with conditions.database("tasker_growth") as url:
        lab = lab_of(url)
        scene = Scene.of(lab, finished)
        pages: dict[str, float] = {name: scene.work(call).pages for name, call in (FLAT | BOUNDED | SAMPLES).items()}
        pages |= {name: scene.work(call).pages / finished for name, call in EACH.items()}
        lab.close()
        return pages
