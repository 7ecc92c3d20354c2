"""Input of a step's handler, evaluated again: it is not stored, and what it is made of does not change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.db.sql_files import query
from tasker.engine.calls import Engine
from tasker.engine.exchange import CLAIM_BYTES, inputs_of, too_large_of
from tasker.engine.plans import PlanStore
from tasker.errors import StepNotFound, TaskerError
from tasker.handlers.step_inputs import scope_of
from tasker.template.condition_plans import ForEach
from tasker.template.plan import Plan, StepPlan
from tasker.views.steps import Step, StepInputs


async def step_inputs(engine: Engine, plans: PlanStore, step: Step) -> StepInputs:
    """Return what the handler of a step reads with `@inputs`.

    A step without `inputs` reads the input of the task. The inputs of a step with `for_each` are those of its item; if
    an instance has several, by their positions. Before the steps above are complete, expressions that read their
    results are problems. `attempt` is the current attempt, or else the next.
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
    if planned.for_each is not None:
        rows = await engine.connection.execute(query("tasks", "kept"), {"task": task_uuid, "step": step.name})
        inputs, problems = _of_items(plan, planned, planned.for_each, rows[0][0] if rows else None, scope)
    else:
        inputs, problems = plan.input_mappings[planned.name].evaluate_each(scope)
    return StepInputs(task_uuid, step_uuid, step.name, attempt, True, inputs, problems)


def _of_items(
    plan: Plan, step: StepPlan, each: ForEach, batch: Mapping[str, Any] | None, scope: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    from tasker.expressions.mapping import MappingFailure  # needed for steps with `for_each` only
    from tasker.handlers.evaluated_steps import item_scopes

    try:
        scopes = item_scopes(each, batch, scope)
    except MappingFailure as error:
        return {}, {"for_each": str(error)}
    made = {str(index): plan.input_mappings[step.name].evaluate_each(item) for index, item in scopes}
    if len(made) == 1:
        return next(iter(made.values()))
    problems = {f"{index}.{name}": text for index, (_, each_of) in made.items() for name, text in each_of.items()}
    return {index: inputs for index, (inputs, _) in made.items()}, problems
