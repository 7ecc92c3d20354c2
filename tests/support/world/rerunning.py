"""An operator runs a task again from one of its steps."""

from __future__ import annotations

from tasker.services.operators.reruns import Reruns
from tests.support.model.parts import Step
from tests.support.world.world import ACTOR, World


def rerun(world: World, step: Step) -> None:
    """Begin a new task that runs the step and what is below it, and reuses the results of the others."""
    world.run(Reruns(world.engine, world.plans, world.submitter).start(step.task.id, step.name, **ACTOR))
    world.check()
