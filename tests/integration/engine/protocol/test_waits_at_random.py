"""Whatever happens to steps that wait, and whoever dies after a commit: no promise is broken, each event and each wait
ends once, and all tasks end."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.integration.engine.protocol.test_events_for_waits import PAID, pairs, send
from tests.integration.engine.protocol.test_waits import NOON
from tests.support.engine_fixture import Item, Lab, ok, operator
from tests.support.random_plans import Spec

STEPS = 60
NAMES = ("event", "step", "token", "nth", "task")


def plan_of(lab: Lab, draw: Any) -> Any:
    """A step, one that waits for a time or an event, perhaps one beside it, and one behind."""
    event = {"event": PAID, "key": draw([None, {"input": ["key"]}]), "schema": None}
    event_wait = {
        "on": "event", "events": [event], "for_seconds": draw([10, 60]), "take": draw(["first", "first", "all"]),
        "count": 1, "since": draw(["task", "any"]),
    }  # fmt: skip
    if event_wait["take"] == "first":
        event_wait["count"] = draw([1, 1, 2])
    waits = [{"on": "time", "for_seconds": draw([1, 20])}, event_wait]
    beside = [Spec("beside", wait=draw(waits))] if draw([True, False]) else []
    waiting = Spec("b", depends_on=("a",), wait=draw(waits), delay=draw([None, None, 5.0]))
    return lab.plan(Spec("a"), waiting, Spec("c", depends_on=("b",)), *beside, name=f"waits{draw('xyz')}")


class Story:
    """Random deeds of two sessions on a few tasks; `clock` is their time in seconds."""

    def __init__(self, lab: Lab, seed: int) -> None:
        self.lab, self.random, self.clock = lab, random.Random(seed), 0.0
        self.tasks: list[str] = []
        self.claims: list[Item] = []

    def run(self) -> None:
        deeds = [self.submit, self.claim, self.end, self.end, self.tick, self.due, self.due, self.send, self.match]
        for _ in range(STEPS):
            self.random.choice([*deeds, self.operate, self.pause])()
            self.check()
        self.lab.one.core("resume", {"namespace": self.lab.namespace, "actor": "ops", "reason": "end"})
        for _ in range(30):
            self.tick(40)
            self.due()
            self.match(dies=False)
            self.claims += self.lab.one.take(10)
            while self.claims:
                self.lab.one.advance(ok(self.claims.pop()))
            self.check()

    def check(self) -> None:
        """No promise is broken, and sweeps find nothing that was lost."""
        self.lab.check()
        found = self.lab.one.core("find_waiting", {"limit": 500, "steps": 2000, "begin": True})
        assert not {"unwaiting", "untimed", "unpromoted", "orphans"} & found.keys(), found
        taken = "select count(*) from tasker.wait_events x join tasker.incoming_events e using (event_uuid)"
        shared = f"{taken} where e.exclusive and x.problem is null group by e.event_uuid having count(*) > 1"
        assert self.lab.observer.rows(shared) == []

    def submit(self) -> None:
        if len(self.tasks) < 6:
            entry = {"context": {"key": self.random.choice([None, "1", "2"])}}
            if self.random.random() < 0.2:
                entry["deadline_ms"] = self.random.choice([5000, 50_000])  # type: ignore[assignment]
            self.tasks += self.lab.submit(plan_of(self.lab, self.random.choice), entry)

    def claim(self) -> None:
        self.claims += self.lab.one.take(self.random.randint(1, 4))

    def end(self) -> None:
        if self.claims:
            claim = self.claims.pop(self.random.randrange(len(self.claims)))
            self.claims += self.lab.one.advance(ok(claim), slots=self.random.randint(0, 2)).get("claims") or ()

    def tick(self, seconds: float | None = None) -> None:
        self.clock += seconds or self.random.choice([0.5, 2, 8])
        for session in (self.lab.one, self.lab.two, self.lab.observer):
            session.set_time(self.clock, NOON)

    def due(self) -> None:
        session = self.random.choice([self.lab.one, self.lab.one, self.lab.two])
        slots = self.random.randint(0, 3) if session is self.lab.one else 0
        self.claims += session.call("due", session.args(slots=slots)).get("claims") or ()

    def send(self) -> None:
        if self.tasks:
            draw = self.random.choice
            send(self.lab.two, draw(["", "1", "2"]), exclusive=draw([True, False]), dedupe_id=draw([None, "d"]))

    def match(self, dies: bool | None = None) -> None:
        """The look after a commit, by one that may die at any of its statements."""
        session = self.random.choice([self.lab.one, self.lab.two])
        found = pairs(session)
        for pair in found["pairs"]:
            if dies is None and self.random.random() < 0.2:
                return
            session.call("match_event", session.args(**{name: pair[name] for name in NAMES}))
        if dies is None and self.random.random() < 0.3:
            return
        session.core("looked", {"events": found["events"], "waits": found["waits"]})

    def operate(self) -> None:
        if not self.tasks:
            return
        task = self.random.choice(self.tasks)
        rows = [row for row in self.lab.steps(task).values() if row.state in ("error", "in_progress")]
        waiting = [row for row in rows if row.worker_uuid is None or row.state == "error"]
        if waiting and self.random.random() < 0.8:
            row = self.random.choice(waiting)
            kind = self.random.choice(["resolve", "complete", *(["reset"] * 3 if row.state == "error" else [])])
            self.lab.one.advance(operator(kind, row, **({"r": {}} if kind == "complete" else {})))
        elif self.random.random() < 0.3:
            self.lab.one.call("cancel", {"task": task, "worker": self.lab.one.worker})

    def pause(self) -> None:
        what = self.random.choice(["pause", "resume", "resume"])
        self.lab.one.core(what, {"namespace": self.lab.namespace, "actor": "ops", "reason": "random"})


@pytest.mark.parametrize("seed", range(4))
def test_waiting_steps_keep_the_invariants_and_end(lab: Lab, seed: int) -> None:
    story = Story(lab, seed)
    story.tick(0.001)
    story.run()

    assert story.tasks
    assert {lab.task(task).complete for task in story.tasks} == {True}, [lab.states(task) for task in story.tasks]
    assert lab.observer.rows("select * from tasker.timers") == []
    assert lab.observer.rows("select * from tasker.step_waits where ended_at is null") == []
