"""Input of a step's handler, evaluated again: it is not stored, and what it is made of does not change."""

from __future__ import annotations

from tasker.db.sql_files import query
from tasker.engine.calls import Engine
from tasker.engine.exchange import CLAIM_BYTES, inputs_of, too_large_of
from tasker.engine.plans import PlanStore
from tasker.errors import StepNotFound, TaskerError
from tasker.handlers.step_inputs import scope_of
from tasker.views.steps import Step, StepInputs


async def step_inputs(engine: Engine, plans: PlanStore, step: Step) -> StepInputs:
    """Return what the handler of a step reads with `@inputs`.

    A step without `inputs` reads the input of the task. Before the steps above are complete, expressions that read
    their results are problems. `attempt` is the current attempt, or else the next.
    """
    task_uuid, step_uuid = step.task_uuid, step.step_uuid
    answer = await engine.read("inputs", {"steps": [step_uuid], "max_bytes": CLAIM_BYTES})
    if too_large_of(answer):
        raise TaskerError(f"the inputs of step {step.name!r} are too large to be read at once")
    task = inputs_of(answer).get(task_uuid)
    rows = await engine.connection.execute(query("client", "template_of_step"), {"step": step_uuid})
    if task is None or not rows:
        raise StepNotFound(f"task {task_uuid} has no step {step_uuid}")
    template_id, ordinal = rows[0]
    plan = await plans.get(template_id)
    planned, attempt = plan.steps[ordinal], max(1, step.attempts)
    if planned.inputs is None:
        return StepInputs(task_uuid, step_uuid, step.name, attempt, False, dict(task.context), {})
    results = {name: result for name, (_, result) in task.results.items()}
    scope = scope_of(plan, task_uuid, task.correlation_id, attempt, task.context, results)
    inputs, problems = plan.input_mappings[planned.name].evaluate_each(scope)
    return StepInputs(task_uuid, step_uuid, step.name, attempt, True, inputs, problems)
