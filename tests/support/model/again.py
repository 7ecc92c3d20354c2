"""The naive model of a rerun: a new task that begins with what another one has done."""

from __future__ import annotations

from tests.support.model.graph import CHOOSERS, Shape, first_steps, grow
from tests.support.model.parts import DONE, Step, Task


def again(start: Step, task_id: str, now: int) -> Task:
    """Return the task that runs `start`, all below it and all that is not done once more, and reuses other results."""
    former, shape = start.task, Shape.of(start.task.plan)
    below = shape.below(start.plan.name)
    steps = former.steps.values()
    repeated = {s.name for s in steps if s is start or s.state not in DONE or s.plan.name in below}
    task = Task(task_id, former.template, former.plan, former.priority, now)
    for name, parents in first_steps(shape).items():
        task.add(name, name, parents)
    for plan in former.plan.steps:
        chooser = former.steps.get(plan.name)
        if plan.type in CHOOSERS and chooser and chooser.name not in repeated:
            task.steps[plan.name].state = chooser.state
            for name, (template, parents) in grow(shape, task.present(), plan.name, chooser.result).items():
                task.add(name, template, parents)
    for step in task.steps.values():
        old = former.steps[step.name]
        step.parents = old.parents & task.steps.keys()
        if step.name not in repeated:
            step.state, step.result, step.accepted = old.state, old.result, int(old.state == "complete")
    return task
