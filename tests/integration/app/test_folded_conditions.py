"""Conditions, rules and lists that are stored with the result of the step above them: `Result.ahead`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tasker
from tasker.engine.calls import Engine
from tasker.errors import ConnectionLost
from tasker.orchestration.results import ResultProcessor
from tasker.step_handler import step_handler
from tasker.template import compile_text
from tasker.template.plan import Plan, StepPlan
from tests.support.random_flows import FLAGS, Step, flows, plan_of

STEPS = """
  select s.name, s.state, s.attempts, s.claim_token, s.unmet, s.max_attempts, s.due_at, s.deadline_at, s.hint_count,
    s.started_at is not null, s.worker_uuid is not null, r.result, r.metadata, i.inputs,
    (select array_agg(format('%%s>%%s %%s', t.from_state, t.to_state, t.worker_uuid is not null) order by t.sort_key)
      from tasker.workflow_step_transitions t where t.workflow_step_uuid = s.workflow_step_uuid),
    (select array_agg(f.name order by f.name) from tasker.workflow_step_edges e
      join tasker.workflow_steps f on f.workflow_step_uuid = e.from_step_uuid
      where e.task_uuid = s.task_uuid and e.to_step_uuid = s.workflow_step_uuid)
  from tasker.workflow_steps s left join tasker.step_results r on r.workflow_step_uuid = s.workflow_step_uuid
  left join tasker.step_inputs i on i.workflow_step_uuid = s.workflow_step_uuid
  where s.task_uuid = %s order by s.name
"""
TASK = """
  select t.state, t.complete, t.total, t.done, t.failed, t.active, t.held, t.retrying, t.graph_version, t.next_seq
  from tasker.tasks t where t.task_uuid = %s
"""
AHEAD = "select count(*) from tasker.step_moves m join tasker.workflow_steps s using (workflow_step_uuid)" + (
    " where s.task_uuid = %s and m.path = 'PEIOC'"
)


@step_handler("h")
async def handle(context: Any) -> dict[str, Any]:
    return {"above": len(context.get_all_dependency_results(""))}


class Folding:
    """The application under test; `on` decides whether its worker evaluates dependents with their parent's result."""

    def __init__(self, app: tasker.SyncApp, url: str) -> None:
        self.app, self.url, self.on = app, url, True
        self._evaluated_below = Plan.evaluated_below

    def evaluated_below(self, plan: Plan) -> dict[str, tuple[StepPlan, ...]]:
        return self._evaluated_below.func(plan) if self.on else {}

    def run(self, plan: Plan, values: dict[str, Any], on: bool = True) -> tuple[str, Any, Any]:
        """Run a task of the plan; return its identifier, its row and those of its steps."""
        self.on = on
        task = self.app.submit(plan, values, idempotency_key=str(uuid4())).task_uuid
        self.app.finished(task, timeout=60)
        with psycopg.connect(self.url) as db:
            return task, db.execute(TASK, (task,)).fetchall(), db.execute(STEPS, (task,)).fetchall()

    def ahead(self, task: str) -> int:
        with psycopg.connect(self.url) as db:
            return int(db.execute(AHEAD, (task,)).fetchone()[0])  # type: ignore[index]


@pytest.fixture(scope="module")
def drawn() -> list[tuple[list[Step], list[bool], list[int]]]:
    """Flows with the values of their flags and the sizes of their lists; the same ones each time.

    Drawn before an application imports modules in its thread: Hypothesis reads the constants of those that are loaded.
    """
    found: list[tuple[list[Step], list[bool], list[int]]] = []

    @settings(max_examples=25, derandomize=True, database=None)
    @given(
        flows(),
        st.lists(st.booleans(), min_size=FLAGS, max_size=FLAGS),
        st.lists(st.integers(0, 3), min_size=10, max_size=10),
    )
    def collect(steps: list[Step], flags: list[bool], sizes: list[int]) -> None:
        found.append((steps, flags, sizes))

    collect()
    return found


@pytest.fixture(scope="module")
def folding(drawn: object, module_database_url: str) -> Iterator[Folding]:
    with pytest.MonkeyPatch.context() as patch, tasker.SyncApp(module_database_url) as app:
        app.registry.register("h", handle._handler_class)
        made = Folding(app, module_database_url)
        patch.setattr(Plan, "evaluated_below", property(made.evaluated_below))
        yield made


def test_folded_and_unfolded_runs_leave_the_same_rows(
    folding: Folding, drawn: list[tuple[list[Step], list[bool], list[int]]]
) -> None:
    ahead = 0
    for steps, flags, sizes in drawn:
        plan = plan_of(steps)
        values = {"flags": flags, "lists": {f"s{number}": list(range(size)) for number, size in enumerate(sizes)}}
        folded, task, rows = folding.run(plan, values)
        usual, usual_task, usual_rows = folding.run(plan, values, on=False)
        assert (task, rows) == (usual_task, usual_rows), plan.to_json()
        assert task[0][0] == "complete"
        ahead += folding.ahead(folded)
        assert folding.ahead(usual) == 0
    assert ahead > 20
    with psycopg.connect(folding.url) as db:
        assert db.execute("select * from tasker.violations_v1('{}')").fetchall() == []


HEAD = """
name: NAME
namespace: conditions
version: 1.0.0
input_schema: {type: object, required: [items], properties: {items: {type: array}}}
steps:
  - {name: first, handler: h}
"""


def plan(steps: str) -> Plan:
    (made,) = compile_text(HEAD.replace("NAME", f"f{uuid4().hex}") + steps).plans
    return made


ABOVE = "  - {name: NEW, handler: h, dependencies: [OLD], when: 'steps.OLD.above >= 0'}\n"
CHAIN = "".join(
    ABOVE.replace("NEW", new).replace("OLD", old) for old, new in pairwise(("first", "s1", "s2", "s3", "s4"))
)


def test_each_condition_of_a_chain_costs_no_claim_and_no_round_trip(
    folding: Folding, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Counter[str]()
    call, read = Engine.call, Engine.read

    async def counted_call(engine: Engine, name: str, *args: Any, **more: Any) -> Any:
        calls[name] += 1
        return await call(engine, name, *args, **more)

    async def counted_read(engine: Engine, name: str, *args: Any, **more: Any) -> Any:
        calls[name] += 1
        return await read(engine, name, *args, **more)

    monkeypatch.setattr(Engine, "call", counted_call)
    monkeypatch.setattr(Engine, "read", counted_read)
    task, _, rows = folding.run(plan(CHAIN), {"items": []})
    assert (len(rows), folding.ahead(task)) == (9, 4)
    assert (calls["advance"], calls["graph"], calls["inputs"]) == (5, 0, 0)  # a write for each step with a handler


def test_all_conditions_below_one_step_end_in_its_write(folding: Folding) -> None:
    steps = [ABOVE.replace("NEW", f"s{number}").replace("OLD", "first") for number in range(3)]
    task, row, _ = folding.run(plan("".join(steps)), {"items": []})
    assert (row[0][:4], folding.ahead(task)) == (("complete", True, 7, 7), 3)


@pytest.mark.parametrize(
    "step",
    [
        "  - {name: s, handler: h, dependencies: [first], when: 'input.items[3] == 1'}",
        "  - {name: s, handler: h, dependencies: [first], for_each: {in: 'input.items.map(i, i / 0)'}}",
    ],
)
def test_condition_that_cannot_be_evaluated_fails_as_it_does_with_a_claim(folding: Folding, step: str) -> None:
    made = plan(step)
    task, *rows = folding.run(made, {"items": [1]})
    _, *usual_rows = folding.run(made, {"items": [1]}, on=False)
    assert rows == usual_rows
    assert folding.ahead(task) == 0
    assert "error" in {row[1] for row in rows[1]}


def test_condition_with_two_parents_is_claimed(folding: Folding) -> None:
    two = "  - {name: second, handler: h}\n  - {name: s, handler: h, dependencies: [first, second], when: 'true'}"
    task, row, _ = folding.run(plan(two), {"items": []})
    assert (row[0][0], folding.ahead(task)) == ("complete", 0)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_write_that_is_lost_with_its_connection_leaves_no_step_twice(
    folding: Folding, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    apply, lost = ResultProcessor.apply, list[str]()

    async def losing(processor: ResultProcessor, changes: Any, *args: Any, **more: Any) -> Any:
        if not lost and any(change["kind"] == "ahead" for change in changes):
            lost.append(moment)
            if moment == "after":
                await apply(processor, changes, *args, **more)
            raise ConnectionLost("the connection ended")
        return await apply(processor, changes, *args, **more)

    made = plan(ABOVE.replace("NEW", "s").replace("OLD", "first"))
    _, *usual_rows = folding.run(made, {"items": []}, on=False)
    monkeypatch.setattr(ResultProcessor, "apply", losing)
    task, *rows = folding.run(made, {"items": []})
    assert lost == [moment]
    assert rows[0] == usual_rows[0]
    assert [row[:2] for row in rows[1]] == [row[:2] for row in usual_rows[1]]
    stored = [[row for row in of_run if row[0] != "s"] for of_run in (rows[1], usual_rows[1])]
    assert stored[0] == stored[1]  # without `s`, whose first claim was in the lost answer
    assert folding.ahead(task) == 1
