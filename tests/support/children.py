"""Steps with child tasks in the laboratory: what `ChildTasks` does, one statement at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tasker.clock import new_task_uuid
from tasker.engine.identity import child_identity
from tasker.template.plan import Plan
from tests.support.engine_fixture import Answer, Item, Lab, Session
from tests.support.random_plans import Spec

WAIT = {
    "on": "task",
    "template": "child",
    "namespace": None,
    "version": None,
    "output": None,
    "for_each": {"in": "input.list", "as": "item"},
    "max_parallel": 100,
    "tolerated": 0,
    "tolerated_percent": None,
    "collect": "results",
}


def parent_plan(lab: Lab, **wait: Any) -> Plan:
    """`a`, which starts children, before `b`."""
    return lab.plan(Spec("a", wait={**WAIT, **wait}), Spec("b", depends_on=("a",)), name="parent")


class FanOut:
    """The children of step `a` of a new task. `total` items are planned; the fan-out is open."""

    def __init__(self, lab: Lab, total: int, *, opened: bool = True, **wait: Any) -> None:
        self.lab, self.total, self.wait = lab, total, {**WAIT, **wait}
        self.child = lab.chain(1, name="child")
        self.plan = parent_plan(lab, **wait)
        self.task = lab.submit_one(self.plan)
        due = lab.one.call("due", lab.one.args(limit=100, turn_ms=4000, late_ms=0))
        assert due["begins_in_ms"] == 0, "whoever suspends it looks at once"
        (wait_row,) = lab.one.core("child_work", {"limit": 10})["unplanned"]
        self.key = {"step": wait_row["step"], "token": wait_row["token"]}
        self.template = template_of(lab.one, self.child)
        if opened:
            assert self.open(lab.one) == {"opened": True}

    def open(self, session: Session, **more: Any) -> Answer:
        for first in range(0, self.total, 500):
            items = [[index, {"n": index}] for index in range(first, min(first + 500, self.total))]
            session.core("add_fan_out_items", {**self.key, "items": items})
        each = self.wait["for_each"] is not None
        own = {"is_list": each, "collects": True, "total": self.total, "max_parallel": self.wait["max_parallel"]}
        limits = {"tolerated": self.wait["tolerated"], "max_depth": 10, "max_descendants": 100_000}
        args = {**self.key, "task": self.task, "template": self.template, **own, **limits, **more}
        return session.core("open_fan_out", args)

    def state(self, session: Session | None = None, slice_: int = 500) -> Answer:
        return (session or self.lab.one).core("fan_out", {**self.key, "items": slice_, "ends": slice_})

    def start(self, session: Session | None = None, slice_: int = 500) -> list[str]:
        """The children that were started."""
        session = session or self.lab.one
        state = self.state(session, slice_)
        return self.write(session, [index for index, _ in state["items"]]) if state.get("items") else []

    def write(self, session: Session, indexes: Iterable[int], **entry: Any) -> list[str]:
        step, token = str(self.key["step"]), int(self.key["token"])
        tasks = [
            {
                "id": new_task_uuid(),
                "identity": child_identity(step, token, index),
                "parent": {"step": step, "token": token, "index": index},
                **entry,
            }
            for index in indexes
        ]
        items = [{"i": task["parent"]["index"], "id": task["id"]} for task in tasks]
        args = {**self.key, "window": self.lab.window, "tasks": tasks, "items": items, "max_depth": 10}
        return [str(task) for task in session.call("start_children", args)["created"]]

    def gather(self, session: Session | None = None, ends: Sequence[Item] | None = None, slice_: int = 500) -> Answer:
        """Count the ends that there are, or the given ones."""
        session = session or self.lab.one
        found = self.state(session, slice_).get("ends", ()) if ends is None else ends
        items = [
            {"id": end["id"], "o": {"n": end["index"]}, "b": 9} if end["ok"] else {"id": end["id"], "e": {}}
            for end in found
        ]
        return session.call("gather", session.args(**self.key, ends=items))

    @property
    def row(self) -> Any:
        columns = "state, due, started, running, succeeded, failed"
        query = f"select {columns} from tasker.fan_outs where workflow_step_uuid = %s and token = %s"
        return self.lab.observer.rows(query, self.key["step"], self.key["token"])[0]

    @property
    def counters(self) -> tuple[int, int, int, int]:
        row = self.row
        return row.started, row.running, row.succeeded, row.failed

    def result(self) -> Any:
        return self.lab.observer.value("select result from tasker.step_results where name = 'a'")


def template_of(session: Session, plan: Plan) -> int:

    return int(session.core("register_template", {"hash": plan.hash, "plan": json.loads(plan.to_json())})["template"])


def end_all(session: Session) -> int:
    """Run the steps of all children that are in the queue; how many there were."""
    claims = session.claim()
    if claims:
        session.finish(*claims)
    return len(claims)
