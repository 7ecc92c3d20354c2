"""Tasks of one step, which a worker has a handler for or not."""

from __future__ import annotations

from tests.support.engine_fixture import Lab
from tests.support.random_plans import Spec


def submitted(lab: Lab, name: str, count: int = 1, **entry: int) -> list[str]:
    """Tasks of one step with that name."""
    return lab.submit(lab.plan(Spec(name), name=f"{name}_flow"), *(entry for _ in range(count)))


def set_aside(lab: Lab) -> int:
    """How many steps wait for somebody who has their handler."""
    query = "select count(*) from tasker.ready_backlog where unserved is not null and namespace_id = %s"
    return int(lab.observer.value(query, lab.namespace_id))


def complete(lab: Lab, tasks: list[str]) -> bool:
    return {lab.task(task).state for task in tasks} == {"complete"}
