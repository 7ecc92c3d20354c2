"""Scenario files made of a template: cases that together reach as much of its graph as mocks and inputs can."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from tasker.dataclasses import dataclass
from tasker.errors import TaskerError, UsageError
from tasker.handlers.builtin import HANDLERS as PURE
from tasker.simulation.coverage import Coverage, branches_of, is_decided_by_persons
from tasker.simulation.mock_texts import read_mock
from tasker.simulation.samples import sample
from tasker.simulation.simulate import simulate
from tasker.template.plan import Plan, StepPlan
from tasker.template.schema_check import check_input
from tasker.template.step_types import Creates

MOST_CASES = 200
"""Runs that are tried."""


@dataclass(frozen=True, slots=True)
class GeneratedCases:
    """Text of a scenario file without its first comment, and the coverage that its cases reach."""

    text: str
    coverage: Coverage


class _Dumper(yaml.SafeDumper):
    """Dumper without anchors, which people would have to follow."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return True: repeat values that are used several times."""
        return True


class _Try(NamedTuple):
    name: str
    values: Mapping[str, Any]
    mocks: Mapping[str, Any]


def generated_cases(
    plan: Plan, template: str, origins: Mapping[str, str], values: Mapping[str, Any] | None = None
) -> GeneratedCases:
    """Return cases of which each reaches something that those before it do not, with what their runs came to.

    `template` is the file's name, relative to the scenario file; `values` are the usual input, by default a small one
    that fits. Raises `UsageError` if no small input fits the
    `input_schema`, or no small result a `result_schema`.
    """
    values = _sample_input(plan) if values is None else dict(values)
    mocks = {step.name: _mock(plan, step) for step in plan.steps if _needs_mock(step)}
    coverage, cases = Coverage(plan, origins), []
    reached: dict[str, _Try] = {}
    for number, attempt in enumerate(_tries(plan, values, mocks, reached)):
        if number == MOST_CASES or not coverage.missing:
            break
        given = {name: read_mock(value, name) for name, value in {**mocks, **attempt.mocks}.items()}
        try:
            run = simulate(plan, {**values, **attempt.values}, given)
        except TaskerError:
            if not number:
                raise
            continue
        for name in run.route:
            reached.setdefault(name, attempt)
        covered = run.covered()
        if not covered <= coverage.shown:
            coverage.shown |= covered
            changes = {"input": dict(attempt.values), "mocks": dict(attempt.mocks)}
            expect = {"status": run.status, "route": run.route}
            cases.append({"name": attempt.name, **{k: v for k, v in changes.items() if v}, "expect": expect})
    head = {"template": template, "name": plan.name, "input": values, "mocks": mocks}
    content = {**{key: value for key, value in head.items() if value}, "cases": cases}
    text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None)
    return GeneratedCases(text, coverage)


def _needs_mock(step: StepPlan) -> bool:
    return (step.has_handler and step.handler.callable not in PURE) or step.is_ended_by_others


def _sample_input(plan: Plan) -> dict[str, Any]:
    try:
        value = sample(plan.input_schema)
    except ValueError as error:
        hint = "write an input.json beside the template, or add `examples` to the properties"
        raise UsageError(f"no small input fits the input_schema of {plan.name}: {error}", hint=hint) from None
    return value if isinstance(value, dict) else {}


def _mock(plan: Plan, step: StepPlan) -> dict[str, Any] | list[dict[str, Any]]:
    """Return the mock of a step that succeeds, as a scenario file writes it; of a decision one that creates all."""
    if step.type.creates is Creates.BRANCHES:
        return {"route": branches_of(plan, step)}
    if step.type.creates is Creates.BATCHES:
        return {"batches": 2}
    schema = step.for_each.result_schema if step.for_each is not None else step.result_schema
    try:
        if is_decided_by_persons(step) and step.wait is not None:
            form = {} if step.wait["form"] is None else {"form": sample(step.wait["form"])}
            votes = [{"approved": True, "by": f"person {number + 1}", **form} for number in range(step.wait["quorum"])]
            return votes if len(votes) > 1 else votes[0]
        if step.wait is not None:
            events = [{"event": sample(step.wait["events"][0]["schema"])}] * step.wait["count"]
            return events if len(events) > 1 else events[0]
        return {"result": sample(schema)}
    except ValueError as error:
        hint = "add a `default` or `examples` to the properties that it needs"
        raise UsageError(f"no small value fits the schema of {step.name!r}: {error}", hint=hint) from None


def _tries(
    plan: Plan, values: Mapping[str, Any], mocks: Mapping[str, Any], reached: Mapping[str, _Try]
) -> Iterator[_Try]:
    """Yield runs to try; a step is changed in the first run that has `reached` it by then."""
    usual = _Try("every step succeeds", {}, {})
    yield usual
    for other in _inputs(plan, values):
        yield _Try(f"input {', '.join(f'{name}: {value}' for name, value in other.items())}", other, {})
    for step in plan.steps:
        if step.name in mocks:
            for words, mock in _ways(plan, step, mocks[step.name]):
                base = reached.get(step.name, usual)
                of = f" ({base.name})" if base.values or base.mocks else ""
                yield _Try(f"{step.name} {words}{of}", base.values, {**base.mocks, step.name: mock})


def _ways(plan: Plan, step: StepPlan, usual: Any) -> Iterator[tuple[str, Any]]:
    """Yield everything else that a mocked step can come to, with words for it."""
    if step.type.creates is Creates.BRANCHES:
        for branch in branches_of(plan, step):
            yield f"chooses {branch}", {"route": [branch]}
        yield "chooses nothing", {"route": []}
    if step.type.creates is Creates.BATCHES:
        yield "has no batches", {"batches": 0}
        yield "has one batch", {"batches": 1}
    if is_decided_by_persons(step):
        first = usual[0] if isinstance(usual, list) else usual
        yield "is rejected", {**first, "approved": False}
        yield "is not decided", {"no_decision": True}
    elif step.wait is not None:
        yield "gets no event", {"no_event": True}
    else:
        if step.retry.retryable and step.retry.max_attempts > 1:
            yield "succeeds at the second attempt", [{"fails": "unavailable"}, usual]
        yield "fails", {"fails": "declined", "retryable": False}


def _inputs(plan: Plan, values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield other values of single properties that the schema allows, which conditions may look at."""
    properties = (plan.input_schema or {}).get("properties", {})
    for name, schema in properties.items() if isinstance(properties, Mapping) else ():
        for value in _other_values(schema):
            if value != values.get(name) and not check_input(plan, {**values, name: value}):
                yield {name: value}


def _other_values(schema: Any) -> tuple[Any, ...]:
    if not isinstance(schema, Mapping):
        return ()
    if isinstance(schema.get("enum"), list):
        return tuple(schema["enum"])
    match schema.get("type"):
        case "boolean":
            return (True, False)
        case "integer" | "number":
            return (0, 1_000_000)
        case "array":
            return ([],)
    return ()
