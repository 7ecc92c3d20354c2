"""Stubs of handlers for the steps of a template that have none."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping

from tasker.template.plan import Plan, StepPlan
from tasker.template.schema_check import listed_properties
from tasker.template.step_types import Creates

NAMES = ("batch_analyzer", "batch_worker", "decision_handler", "depends_on", "inputs", "step_handler")
"""Decorators of stubs, in `tasker.step_handler`."""


def handler_stub(plan: Plan, step: StepPlan) -> str:
    """Return the code of a function that fits a step and fails until it is written."""
    inputs, results = _inputs(plan, step), _results(plan, step)
    lines = [_decorator(plan, step)]
    if results:
        lines.append(f"@depends_on({', '.join(f'{name}={other!r}' for name, other in results.items())})")
    if inputs:
        lines.append(f"@inputs({', '.join(map(repr, inputs))})")
    name = _identifier(step.handler.callable.rpartition(".")[2])
    lines.append(f"def {name}({', '.join([*results, *inputs])}):")
    if step.description:
        text = " ".join(step.description.split()).replace("\\", "\\\\").replace('"', "'")
        lines.append(f'    """{text}"""')
    lines.append(f'    raise NotImplementedError("the handler of {step.name} is not written yet")')
    return "\n".join(lines) + "\n"


def _decorator(plan: Plan, step: StepPlan) -> str:
    name = step.handler.callable
    if step.type.creates is Creates.BRANCHES:
        return f"@decision_handler({name!r})"
    if step.type.creates is Creates.BATCHES:
        workers = [other for other in plan.dependents[step.name] if plan.by_name[other].type.is_pattern]
        return f"@batch_analyzer({name!r}, worker_template={(workers or [''])[0]!r})"
    if step.type.is_pattern and step.for_each is None:
        return f"@batch_worker({name!r})"
    return f"@step_handler({name!r})"


def _inputs(plan: Plan, step: StepPlan) -> list[str]:
    """Return the names of the inputs that a parameter can have; of a batch worker none, it reads its batch."""
    if step.type.is_pattern and step.for_each is None:
        return []
    names = step.inputs if step.inputs is not None else sorted(listed_properties(plan.input_schema) or ())
    return [name for name in names if _is_parameter(name)]


def _results(plan: Plan, step: StepPlan) -> Mapping[str, str]:
    """Return a parameter for the result of each dependency whose handler returns one."""
    if step.inputs is not None or (step.type.is_pattern and step.for_each is None):
        return {}
    above = [plan.by_name[name] for name in step.depends_on]
    read = [other for other in above if other.has_handler and not other.type.is_pattern and not other.type.expands]
    taken = set(_inputs(plan, step))
    names = {other.name: _identifier(other.name) for other in read}
    return {f"{name}_result" if name in taken else name: other for other, name in names.items()}


def _is_parameter(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")


def _identifier(name: str) -> str:
    plain = re.sub(r"\W", "_", name)
    return plain if _is_parameter(plain) else f"step_{plain}"
