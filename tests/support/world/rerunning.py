"""An operator runs a task again from one of its steps."""

from __future__ import annotations

from tasker.services.operators.reruns import Reruns
from tests.support.model.model import Model
from tests.support.model.parts import DONE, Step
from tests.support.world.world import ACTOR, World


def rerun(world: World, step: Step) -> None:
    """Begin a new task that runs the step and what is below it, and reuses the results of the others."""
    world.run(Reruns(world.engine, world.plans, world.submitter).start(step.task.id, step.name, **ACTOR))
    world.check()


def to_rerun(model: Model) -> list[Step]:
    """Steps of which a rerun is worth most: that are not done in a task with results, that failed, or any."""
    reusing = [
        step
        for step in model.steps()
        if step.state not in DONE and any(other.state in DONE for other in step.task.steps.values())
    ]
    return reusing or model.steps("error") or model.steps()
