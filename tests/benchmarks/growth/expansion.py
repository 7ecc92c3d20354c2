"""Tasks that grow while they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.benchmarks.growth.case import Case
from tests.support.engine_fixture import Lab, new_step, ok
from tests.support.random_plans import BATCHABLE, DEFERRED, WORKER, Spec


def cut(lab: Lab, count: int) -> Callable[[], Any]:
    """The result of a batchable step that makes so many workers and the step that joins them."""
    plan = lab.plan(
        Spec("cut", BATCHABLE), Spec("work", WORKER, ("cut",)), Spec("sum", DEFERRED, ("work",)), name="batches"
    )
    _, claims = lab.running(plan)
    workers = [
        {**new_step(plan, "work", "cut"), "name": f"work_{number:03}", "inputs": {"n": number}, "batch": True}
        for number in range(count)
    ]
    joined = new_step(plan, "sum", *(str(worker["name"]) for worker in workers))
    item = ok(claims["cut"], gv=0, x=[*workers, joined])

    def advance() -> None:
        assert not lab.one.advance(item).get("verdicts"), "accepted"
        assert lab.one.value("select count(*) from tasker.workflow_steps") == count + 2

    return advance


CASES = (Case("expand", "batches", 20_000, 3.0, cut),)
