"""What `advance_simple` does with a write, the general way would have done: rows, history and answer are the same.

Tasks are walked through at random. Each write is made both ways on the same rows, in transactions that are undone, and
then for good.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import psycopg

from tasker.template.plan import Plan
from tests.support.engine_fixture import Item, Lab, change, fail, ok, operator, retry
from tests.support.random_plans import Spec

WALKS = 40
NO_OTHER_WAY = (
    "create or replace function tasker.advance_simple(p_args jsonb, p_now timestamptz) returns jsonb language sql "
    "as 'select null::jsonb'"
)
OF_TASK = ("tasks", "workflow_steps", "step_results", "step_failures", "task_moves", "refused_results", "tasks_dlq")
LEFT_OUT = ("id", "failure_id", "entry_id", "dlq_entry_uuid")
STEPS = "(select s.workflow_step_uuid from tasker.workflow_steps s where s.task_uuid = %(task)s)"
LEFT_UNSAID: Any = object()
Wish = Callable[[random.Random, Item], Item]
UNUSUAL: dict[str, Wish] = {
    "fails": lambda chance, claim: fail(claim),
    "is tried again": lambda chance, claim: retry(claim, delay_ms=0),
    "is given back": lambda chance, claim: change("release", claim, n={"reason": "closing"}),
    "has an old token": lambda chance, claim: ok({**claim, "token": claim["token"] - 1}),
    "is another worker's": lambda chance, claim: ok({**claim, "worker": str(uuid4())}),
    "has a note": lambda chance, claim: ok(claim, n={"why": "a person asked"}),
    "changes the graph": lambda chance, claim: ok(claim, x=[], gv=0),
    "creates steps": lambda chance, claim: ok(claim, x=[*created(chance, claim)], gv=0),
}


def created(chance: random.Random, claim: Item) -> Iterator[dict[str, Any]]:
    """Steps in a row below this one, some with inputs of their own, of the last step of the template: none is below."""
    parent = claim["name"]
    for number in range(3):
        name = f"{claim['name']}_{number}"
        inputs = {"inputs": {"part": number}} if chance.random() < 0.3 else {}
        yield {"name": name, "ordinal": claim["last"], "parents": [parent], **inputs}
        parent = name


def some_plan(lab: Lab, chance: random.Random, number: int) -> Plan:
    names = [f"s{place}" for place in range(chance.randint(1, 7))]
    return lab.plan(
        *(
            Spec(
                name,
                depends_on=tuple(chance.sample(names[:place], min(place, chance.randint(0 if place > 2 else 1, 3)))),
            )
            for place, name in enumerate(names)
        ),
        name=f"walk{number}",
    )


def plain(chance: random.Random, claim: Item) -> Item:
    results: list[dict[str, Any]] = [
        {},
        {"r": None},
        {"m": {"took": "long"}},
        {"ms": None},
        {"r": {"rows": [1, 2.50, None]}},
        {"r": chance.choice(["text", 0, False, []]), "ms": chance.choice([-5, 0.4, 1e18])},
        dict.fromkeys(("w", "e", "n", "x", "gv", "m")),
    ]
    return {**ok(claim), **chance.choice(results)}


def all_plain(chance: random.Random, claims: list[Item]) -> list[Item]:
    return [plain(chance, claim) for claim in claims]


class Write:
    """A call of `advance_v1`, and what both ways make of it."""

    def __init__(self, lab: Lab, task: str, args: dict[str, Any]) -> None:
        self.lab, self.task, self.args = lab, task, args

    @contextmanager
    def undone(self) -> Any:
        with self.lab.one.connection.transaction(force_rollback=True):
            yield

    def is_plain(self) -> bool:
        with self.undone():
            call = "select tasker.advance_simple(%s::jsonb, tasker.now()) is not null"
            return bool(self.lab.one.value(call, json.dumps(self.args)))

    def both_ways(self) -> tuple[Any, Any]:
        with self.undone():
            return self._made(), self._made(NO_OTHER_WAY)

    def _made(self, before: str = "select") -> Any:
        with self.undone():
            self.lab.one.execute(before)
            try:
                with self.lab.one.connection.transaction():
                    answer = self.lab.one.call("advance", self.args)
            except psycopg.Error as error:
                return error.sqlstate
            return {key: value for key, value in answer.items() if value is not None}, self._rows()

    def _rows(self) -> list[Any]:
        queries = [f"select to_jsonb(x) as row from tasker.{table} x where task_uuid = %(task)s" for table in OF_TASK]
        queries += [f"select to_jsonb(x) as row from tasker.step_moves x where workflow_step_uuid in {STEPS}"]
        queries += ["select to_jsonb(sum(enqueued)) as row from tasker.enqueue_counters"]
        rows = [self.lab.one.connection.execute(query.encode(), {"task": self.task}) for query in queries]
        known = [[row.row for row in found.fetchall()] for found in rows]
        return [sorted(json.dumps(_stripped(row), sort_keys=True) for row in table) for table in known]


def _stripped(row: Any) -> Any:
    return {key: value for key, value in row.items() if key not in LEFT_OUT} if isinstance(row, dict) else row


def caller(lab: Lab, chance: random.Random, plan: Plan) -> dict[str, Any]:
    """A worker that can take most of what there is, or something that it cannot."""
    template = lab.one.value("select max(template_id) from tasker.templates where hash = %s", plan.hash)
    unserved = [f"{template}:{chance.randrange(len(plan.steps))}"] if chance.random() < 0.3 else []
    wishes = {"slots": chance.choice([0, 1, 5, 5, 5]), "unserved": unserved, "wait": chance.random() < 0.5}
    unlikely: list[dict[str, Any]] = [
        {"note": {"by": "x"}},
        {"repairs": "lost_worker"},
        {"namespace_ids": [0]},
        {"namespace_ids": LEFT_UNSAID},
        {"timeout_ms": chance.choice([-1, 10**15]), "grace_ms": 10**15},
        {"window": 0, "on_blocked": "wait"},
    ]
    found = lab.one.args(**wishes, **(chance.choice(unlikely) if chance.random() < 0.3 else {}))
    return {key: value for key, value in found.items() if value is not LEFT_UNSAID}


def walk(lab: Lab, number: int) -> Counter[bool]:
    """Bring a task to its end, or to where nothing runs any more; how many writes were plain, and how many were not."""
    chance, found = random.Random(number), Counter[bool]()
    plan = some_plan(lab, chance, number)
    waiter = {"waiter": str(uuid4())} if chance.random() < 0.5 else {}
    (task,) = lab.one.submit(plan, {"priority": chance.randint(0, 2)}, **waiter)["created"]
    while running := list(lab.running_claims(task).values()):
        brought = chance.sample(running, chance.randint(1, len(running)))
        items = all_plain(chance, brought)
        if chance.random() < 0.4:
            items[0] = UNUSUAL[chance.choice(list(UNUSUAL))](chance, {**brought[0], "last": len(plan.steps) - 1})
        if chance.random() < 0.1:
            items.append(items[0])
        write = Write(lab, task, {**caller(lab, chance, plan), "items": items})
        as_it_is, the_general_way = write.both_ways()
        assert as_it_is == the_general_way, (number, items)
        found[write.is_plain()] += 1
        lab.one.call(
            "advance", write.args if chance.random() < 0.5 else write.args | {"items": all_plain(chance, brought)}
        )
        if chance.random() < 0.1:
            lab.one.advance(operator("reset", chance.choice(list(lab.steps(task).values()))))
    return found


def test_a_plain_write_leaves_what_the_general_way_leaves(lab: Lab) -> None:
    found = sum((walk(lab, number) for number in range(WALKS)), Counter[bool]())
    assert min(found[True], found[False]) > WALKS / 2, found


def test_a_pause_makes_no_write_plain(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(3))
    write = Write(lab, task, lab.one.args(slots=5, items=[ok(claims["s0"])]))
    assert write.is_plain()

    lab.one.core("pause", {"namespace": lab.namespace, "step": "s1", "template": "chain", "actor": "x", "reason": ""})
    assert not write.is_plain()
    as_it_is, the_general_way = write.both_ways()
    assert as_it_is == the_general_way


def test_a_result_after_which_a_task_fails_is_not_plain(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), Spec("b")))
    lab.one.advance(fail(claims["a"]))
    write = Write(lab, task, lab.one.args(slots=5, items=[ok(claims["b"])]))
    assert not write.is_plain()
    as_it_is, the_general_way = write.both_ways()
    assert as_it_is == the_general_way


def test_a_caller_that_names_no_namespace_is_handed_nothing(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(2))
    args = lab.one.args(slots=5, items=[ok(claims["s0"])])
    del args["namespace_ids"]
    write = Write(lab, task, args)
    assert not write.is_plain()
    as_it_is, the_general_way = write.both_ways()
    assert as_it_is == the_general_way
