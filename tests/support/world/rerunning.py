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
    """Steps of which a rerun is worth most: that failed in a task with results, that failed, or any."""
    failed = model.steps("error")
    return [s for s in failed if any(o.state in DONE for o in s.task.steps.values())] or failed or model.steps()
