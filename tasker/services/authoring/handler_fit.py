"""Check whether a template provides the dependencies and inputs that its handler functions declare.

Only functions declare what they read. A class reads from its context at run time, which cannot be checked before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tasker.contracts.plan import Plan, StepPlan
from tasker.contracts.step_types import Creates
from tasker.registry.invocation import ResolvedHandler
from tasker.step_handler.binding import declared_dependencies, declared_inputs, where
from tasker.step_handler.function_handler import FunctionHandler
from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.schema.keys import listed_properties


class SignatureProblem(NamedTuple):
    """Requirement of a handler that its step cannot meet; `message` names the handler's file and line."""

    step: str
    message: str
    hint: str


def misfits(plan: Plan, step: StepPlan, found: ResolvedHandler) -> Iterator[SignatureProblem]:
    """Yield every declaration of the step's handler that this plan cannot meet."""
    handler = getattr(found.call, "__self__", None)
    function = type(handler).function if isinstance(handler, FunctionHandler) else None
    if problem := found.problem(step):
        yield SignatureProblem(
            step.name, f"{found.name if function is None else where(function)} {problem[0]}", problem[1]
        )
        return
    if not isinstance(handler, FunctionHandler) or function is None:
        return
    problems = (
        *_of_dependencies(plan, step, function),
        *_of_inputs(plan, function),
        *_of_batches(plan, step, handler),
    )
    for message, hint in problems:
        yield SignatureProblem(step.name, f"{where(function)} {message}", hint)


Problem = tuple[str, str]
"""Message and hint."""


def _of_dependencies(plan: Plan, step: StepPlan, function: Callable[..., Any]) -> Iterator[Problem]:
    names = [name for name, _ in declared_dependencies(function).values()]
    above = plan.above.of(step.name) if names else ()
    for name in names:
        other = plan.by_name.get(name)
        if other is None and not _is_instance(name, plan, above):
            message = f"reads the result of `{name}`, which is not a step of {plan.namespace}/{plan.name}"
            yield message, _near(name, above, f"the steps above `{step.name}`")
        elif other is not None and name not in above:
            yield f"reads the result of `{name}`, which is not above `{step.name}`", _add(name, step, above)
        elif other is not None and other.type.is_pattern:
            message = f"reads the result of `{name}`, a {other.type}, which has one result per batch"
            yield message, "read them with @batch_aggregator, or context.get_all_dependency_results"


def _is_instance(name: str, plan: Plan, above: Sequence[str]) -> bool:
    """Return True for `process_001`, an instance of the batch_worker `process` above the step."""
    pattern = plan.by_name.get(re.sub(r"_\d{3,}$", "", name))
    return pattern is not None and pattern.type.is_pattern and pattern.name in above


def _of_inputs(plan: Plan, function: Callable[..., Any]) -> Iterator[Problem]:
    names = _needed_inputs(function)
    known = _listed_inputs(plan) if names else None
    for name in names:
        if known is not None and name not in known:
            message = f"reads the input `{name}`, which the input_schema of {plan.namespace}/{plan.name} does not list"
            advice = "add it to `properties`, or write `additionalProperties: true` if there may be others"
            yield message, did_you_mean(name, known) or advice


@lru_cache(maxsize=256)
def _listed_inputs(plan: Plan) -> frozenset[str] | None:
    return listed_properties(plan.input_schema)


def _needed_inputs(function: Callable[..., Any]) -> list[str]:
    names, model = declared_inputs(function)
    fields = getattr(model, "model_fields", {}).items()
    plain = {name: field for name, field in fields if field.validation_alias is None and field.is_required()}
    aliases = [f.validation_alias for _, f in fields if isinstance(f.validation_alias, str) and f.is_required()]
    return [*names, *plain, *aliases]


def _of_batches(plan: Plan, step: StepPlan, handler: FunctionHandler) -> Iterator[Problem]:
    """Check the batch_worker and batchable steps named by an analyzer or an aggregator."""
    if not hasattr(handler, "worker_template"):
        return
    from tasker.step_handler.function_kinds import BatchAggregatorFunction, BatchAnalyzerFunction

    if isinstance(handler, BatchAnalyzerFunction):
        below = [s.name for s in plan.steps if s.type.is_pattern and step.name in s.depends_on]
        yield from _named("cuts batches for", handler.worker_template, below, f"batch_worker below `{step.name}`")
    if isinstance(handler, BatchAggregatorFunction):
        above = plan.above.of(step.name)
        workers = [name for name in above if plan.by_name[name].type.is_pattern]
        batchables = [name for name in above if plan.by_name[name].type.creates is Creates.BATCHES]
        yield from _named("puts together", handler.worker_template, workers, f"batch_worker above `{step.name}`")
        yield from _named("reads the analysis of", handler.analyzer, batchables, f"batchable step above `{step.name}`")


def _named(does: str, name: str, fitting: list[str], what: str) -> Iterator[Problem]:
    if name not in fitting:
        yield f"{does} `{name}`, which is not a {what}", _near(name, fitting, what)


def _add(name: str, step: StepPlan, above: Sequence[str]) -> str:
    if name == step.name:
        return "a step cannot read its own result"
    others = listed(above) or "none"
    return f"add `{name}` to the dependencies of `{step.name}`, or read a step above it: {others}"


def _near(name: str, known: Iterable[str], what: str) -> str:
    names = sorted(known)
    return did_you_mean(name, names) or f"{what}: {listed(names) or 'none'}"
