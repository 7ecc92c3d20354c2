"""Checks of mocks against the template: a mistake in a test is named before anything runs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Literal

from tasker.errors import UsageError
from tasker.simulation.mocks import Mock, MockedCall
from tasker.simulation.votes import problems_of_vote
from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.plan import Plan, StepPlan
from tasker.template.schema_check import check_result
from tasker.template.step_types import Creates

Strictness = Literal["strict", "present", "none"]
"""How mocked results are checked against `result_schema`: wholly, only the fields that they have, or not at all."""


def check_mocks(plan: Plan, mocks: Mapping[str, Any], strictness: Strictness) -> None:
    """Raise `UsageError` for a mock of no step, of a wrong kind, or whose result does not fit."""
    problems = []
    for name, mock in mocks.items():
        if getattr(mock, "__module__", None) == Mock.__module__ and inspect.isfunction(mock):
            problems.append(
                f"the mock of {name!r} is the function `mock.{mock.__name__}`: write mock.{mock.__name__}(...)"
            )
        step = plan.by_name.get(name) or plan.by_name.get(name.rpartition("_")[0])
        if step is None or (step.name != name and not step.type.is_pattern):
            near = did_you_mean(name, plan.by_name) or f"its steps: {listed(list(plan.by_name))}"
            problems.append(f"{plan.namespace}/{plan.name} has no step {name!r} to mock: {near}")
        elif isinstance(mock, Mock):
            problems += [problem for call in mock.calls for problem in _problems(plan, step, call, strictness)]
    if problems:
        raise UsageError(
            "; ".join(dict.fromkeys(problems)),
            hint="a mock replaces what the step of this name waits for, or the result of its handler",
        )


def _problems(plan: Plan, step: StepPlan, call: MockedCall, strictness: Strictness) -> list[str]:
    if not isinstance(call.result, Mapping | None):
        was = f"expected keys and values, got {call.result!r:.80}"
        return [f"the mock of {step.name!r} has a result that is no object: {was}"]
    if call.route is not None and step.type.creates is not Creates.BRANCHES:
        return [f"the mock of {step.name!r} takes a route, and the step is {step.type}, not a decision"]
    if call.batches is not None and step.type.creates is not Creates.BATCHES:
        return [f"the mock of {step.name!r} cuts batches, and the step is {step.type}, not batchable"]
    if unknown := [name for name in call.route or () if name not in plan.by_name]:
        near = did_you_mean(unknown[0], plan.by_name) or f"its steps: {listed(plan.by_name)}"
        return [f"the mock of {step.name!r} takes a route to {unknown[0]!r}, which is no step: {near}"]
    if call.items and step.for_each is None:
        return [f"the mock of {step.name!r} has items, and the step has no `for_each`"]
    if call.items:
        return [problem for item in call.items for problem in _problems(plan, step, item, strictness)]
    is_event, is_vote = call.event is not None, call.vote is not None
    if is_vote or (step.wait is not None and step.wait.get("on") == "person"):
        return problems_of_vote(step, call.vote)
    if step.type.starts_children:
        return [] if call.failure or call.result else [f"the mock of {step.name!r} says no result of its children"]
    if step.wait is not None and not is_event:
        return [f"the mock of {step.name!r} is no event, and the step waits: write mock.event(...)"]
    if is_event:
        waits = step.has_handler if step.wait is None else "events" in step.wait
        return [] if waits else [f"the mock of {step.name!r} is an event, and the step does not wait for one"]
    schema = step.for_each.result_schema if step.for_each is not None else step.result_schema
    if schema is None or call != MockedCall(call.result, takes_ms=call.takes_ms) or strictness == "none":
        return []
    if strictness == "present":
        schema = {key: value for key, value in schema.items() if key != "required"}
    return [f"the mock of {step.name!r} does not fit its result_schema: {m}" for m in check_result(schema, call.result)]
