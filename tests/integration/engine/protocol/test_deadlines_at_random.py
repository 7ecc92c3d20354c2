"""Whatever happens to tasks with deadlines, delays and snoozes: no promise is broken, and all of them end."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.support.engine_fixture import Item, Lab, change, fail, ok, operator, retry
from tests.support.random_plans import Spec

STEPS = 120


class Story:
    """Random deeds of one session on a few tasks; `clock` is its time in seconds."""

    def __init__(self, lab: Lab, seed: int) -> None:
        self.lab, self.random, self.clock = lab, random.Random(seed), 0.0
        self.tasks: list[str] = []
        self.claims: list[Item] = []
        self.parked: list[Item] = []

    def run(self) -> None:
        deeds = [self.submit, self.claim, self.claim, self.end, self.end, self.end, self.settle, self.tick, self.due]
        for _ in range(STEPS):
            self.random.choice([*deeds, self.operate])()
            self.check()
        for _ in range(40):
            self.tick(40)
            self.due()
            self.claim()
            while self.claims:
                self.lab.one.advance(ok(self.claims.pop()))
            self.settle()
        self.check()

    def check(self) -> None:
        """No promise is broken, and no task that has ended keeps the timer of its deadline."""
        self.lab.check()
        deadlines = (
            "select t.complete from tasker.timers m join tasker.tasks t on t.task_uuid = m.subject where m.kind = 'd'"
        )
        assert not any(row.complete for row in self.lab.observer.rows(deadlines))

    def submit(self) -> None:
        if len(self.tasks) < 6:
            draw = self.random.choice
            plan = self.lab.plan(
                Spec("a"),
                Spec("b", depends_on=("a",), delay=draw([None, 5.0, 30.0])),
                Spec("c"),
                name=f"story{draw('xy')}",
            )
            entry: dict[str, Any] = {
                "deadline_ms": draw([1000, 10_000, 20_000, 60_000]),
                "delay_ms": draw([0, 0, 4000]),
            }
            self.tasks += self.lab.submit(plan, entry if self.random.random() < 0.8 else {})

    def claim(self) -> None:
        self.claims += self.lab.one.claim(self.random.randint(1, 4))

    def end(self) -> None:
        if not self.claims:
            return
        claim = self.claims.pop(self.random.randrange(len(self.claims)))
        how = self.random.choice(["ok", "ok", "fail", "retry", "snooze", "defer", "release", "park"])
        if how == "park":
            self.lab.one.call("park", {"worker": self.lab.one.worker, "items": [ok(claim)]})
            self.parked.append(claim)
            return
        delay = self.random.choice([500, 5000, 30_000])
        item = {
            "ok": lambda: ok(claim),
            "fail": lambda: fail(claim),
            "retry": lambda: retry(claim, delay_ms=delay),
            "snooze": lambda: change("snooze", claim, d=delay, sn=3),
            "defer": lambda: change("defer", claim, d=delay),
            "release": lambda: change("release", claim),
        }[how]()
        answer = self.lab.one.advance(item, snoozes=how == "snooze", slots=self.random.randint(0, 2))
        self.claims += answer.get("claims") or ()

    def settle(self) -> None:
        while self.parked:
            self.lab.one.advance(change("ok", self.parked.pop()))

    def tick(self, seconds: float | None = None) -> None:
        self.clock += seconds or self.random.choice([0.5, 2, 8])
        for session in (self.lab.one, self.lab.observer):
            session.set_time(self.clock)

    def due(self) -> None:
        answer = self.lab.one.call("due", self.lab.one.args(slots=self.random.randint(0, 3)))
        self.claims += answer.get("claims") or ()

    def operate(self) -> None:
        if not self.tasks:
            return
        task = self.random.choice(self.tasks)
        failed = [row for row in self.lab.steps(task).values() if row.state == "error"]
        if failed and self.random.random() < 0.7:
            kind = self.random.choice(["reset", "resolve", "complete"])
            self.lab.one.advance(
                operator(kind, self.random.choice(failed), **({"r": {}} if kind == "complete" else {}))
            )
        elif self.random.random() < 0.3:
            self.lab.one.call("cancel", {"task": task, "worker": self.lab.one.worker})


@pytest.mark.parametrize("seed", range(8))
def test_tasks_with_deadlines_break_no_promise_and_end(lab: Lab, seed: int) -> None:
    story = Story(lab, seed)
    story.tick(0.001)
    story.run()

    assert story.tasks
    assert {lab.task(task).complete for task in story.tasks} == {True}, [lab.states(task) for task in story.tasks]
    assert lab.observer.rows("select * from tasker.timers") == []
