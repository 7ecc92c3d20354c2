"""What a task of four steps in a row costs that uses no further feature: statements and rows, counted by the server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.support.engine_fixture import Item, Lab, ok
from tests.support.fleets.work import work_of

ROWS = """select c.relname, pg_stat_get_xact_tuples_inserted(c.oid), pg_stat_get_xact_tuples_updated(c.oid)
  from pg_class c where c.relnamespace = 'tasker'::regnamespace and c.relkind = 'r'"""
TASKS = [f"019f0000-0000-7000-800{number}-000000000000" for number in range(3)]


class Costs:
    """Nested statements of each call (none where the server has no auto_explain), and all rows that they wrote."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.statements: list[int] = []
        self.inserted, self.updated = Counter[str](), Counter[str]()

    def add(self, call: Callable[[], Any]) -> None:
        work = work_of(self.lab.one, lambda: self._counted(call))
        own = (ROWS, "select tasker.")
        self.statements.append(sum(not text.startswith(own) for text, _ in work.plans))

    def _counted(self, call: Callable[[], Any]) -> None:
        before = self.lab.one.rows(ROWS)
        call()
        for (table, *old), (_, *new) in zip(before, self.lab.one.rows(ROWS), strict=True):
            self.inserted[table] += new[0] - old[0]
            self.updated[table] += new[1] - old[1]


def test_a_plain_task_of_four_steps_costs_what_it_always_did(lone_lab: Lab) -> None:
    lab = lone_lab
    caller = lab.one.args(slots=4)
    claims: list[Item] = lab.one.submit(lab.chain(4), {}, **caller)["claims"]
    template = lab.one.value("select max(template_id) from tasker.templates")

    def advance() -> None:
        claims.extend(lab.one.core("advance", {**caller, "items": [ok(claims.pop())]}).get("claims") or ())

    def measured(task: str) -> Costs:
        def submit() -> None:
            tasks = [{"id": task, "identity": task}]
            claims.extend(lab.one.core("submit", {**caller, "template": template, "tasks": tasks})["claims"])

        costs = Costs(lab)
        costs.add(submit)
        while claims:
            costs.add(advance)
        assert lab.task(task).state == "complete"
        return costs

    while claims:
        advance()
    all_costs = [measured(task) for task in TASKS]  # a plan may be made anew in between, with statements of its own

    assert [min(of_call) for of_call in zip(*(costs.statements for costs in all_costs), strict=True)] in (
        [12, 7, 7, 7, 7],
        [0] * 5,  # a server that does not show them
    )
    for costs in all_costs:
        assert +costs.inserted == {
            "tasks": 1, "task_details": 1, "workflow_steps": 4, "task_moves": 5, "step_moves": 8, "step_results": 4,
        }  # fmt: skip
        assert +costs.updated == {"tasks": 4, "workflow_steps": 7}
