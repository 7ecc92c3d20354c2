"""Tasks that expire where no worker has begun them, in the naive model."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.model.model import Model
from tests.support.model.parts import Task


def expired(model: Model) -> list[Task]:
    """Tasks whose expiry has come, begun or not, ended or not."""
    return [task for task in model.tasks.values() if task.expires is not None and task.expires <= model.now]


def expire(model: Model, finished: Mapping[str, str]) -> None:
    """Those that were never begun are cancelled; the others have no expiry any more. `finished` is what was told."""
    tasks = expired(model)
    unbegun = [task for task in tasks if task.state == "open" and not any(step.token for step in task.steps.values())]
    assert finished == {task.id: "cancelled" for task in unbegun}, (finished, [task.id for task in unbegun])
    for task in tasks:
        task.expires = None
    for task in unbegun:
        model.cancel(task)
