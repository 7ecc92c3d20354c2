"""Conditions, rules and lists that are stored with the result of the step above them: `Result.ahead`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tasker
from tasker.step_handler import step_handler
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
            assert db.execute("select * from tasker.violations_v1('{}')").fetchall() == []
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
