"""Strict reading of what a decision or batch chose, within limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.dataclasses import dataclass
from tasker.engine.expansion.batches import ParsedBatches
from tasker.engine.expansion.graph import GraphDelta
from tasker.engine.expansion.outcomes import (
    OutcomeError,
    OutcomeProblem,
    describe,
    did_you_mean,
    malformed,
    outcome_of,
    refuse_unknown_keys,
)
from tasker.handlers.outcome_forms import DECISION_KEY, DecisionType, decision_form
from tasker.settings.execution import BatchProcessing, DecisionPoints
from tasker.template.plan import StepPlan
from tasker.template.step_types import Creates

_EXAMPLE = (
    "self.decision_success(['step_name']), or "
    '{"decision_point_outcome": {"type": "create_steps", "step_names": ["step_name"]}}'
)
_TYPES = tuple(DecisionType)
_EXPECTED = f'expected "{DecisionType.CREATE_STEPS}" or "{DecisionType.NO_BRANCHES}"'
_OLDER = {"ActivateSteps": "create_steps", "CreateSteps": "create_steps", "NoBranches": "no_branches"}


@dataclass(frozen=True, slots=True)
class ParsedDecision:
    """Steps that a decision creates, each once, in its order; empty for `no_branches`."""

    step_names: tuple[str, ...] = ()


NO_BRANCHES = ParsedDecision()


def parse_decision(result: Any) -> ParsedDecision:
    """Parse the decision in a step's result.

    Accepts the wire form (`type`, `step_names`) and the form of the published class (`decision_type`,
    `next_step_names`). Repeated names count once. Raises `OutcomeError` for everything else: no outcome, an unknown
    type or key, an empty `create_steps`, steps that the template does not declare.
    """
    outcome = outcome_of(result, DECISION_KEY, _EXAMPLE)
    type_key, names_key, known = decision_form(outcome)
    _check_type(outcome, type_key)
    _refuse_dynamic_steps(outcome)
    refuse_unknown_keys(DECISION_KEY, outcome, known)
    names = outcome.get(names_key)
    if outcome[type_key] == DecisionType.NO_BRANCHES:
        return _no_branches(names, names_key)
    return ParsedDecision(_names(names, names_key))


def _check_type(outcome: Mapping[str, Any], key: str) -> None:
    kind = outcome.get(key)
    if kind in _TYPES:
        return
    if kind is None:
        raise malformed(DECISION_KEY, f"has no '{key}'", _EXPECTED)
    if isinstance(kind, str) and kind in _OLDER:
        raise malformed(DECISION_KEY, f"has the {key} '{kind}', an older spelling", f"write '{_OLDER[kind]}'")
    hint = did_you_mean(kind, _TYPES) if isinstance(kind, str) else _EXPECTED
    raise malformed(DECISION_KEY, f"has an unknown {key}: {describe(kind)}", hint)


def _refuse_dynamic_steps(outcome: Mapping[str, Any]) -> None:
    if outcome.get("dynamic_steps"):
        raise malformed(
            DECISION_KEY,
            "holds 'dynamic_steps': a decision chooses among the steps of its template, it cannot bring new ones",
            "declare the steps in the template and name them in step_names",
        )


def _no_branches(names: Any, key: str) -> ParsedDecision:
    if names:
        raise malformed(
            DECISION_KEY, f"is no_branches and yet has {key}: {describe(names)}", "create_steps creates them"
        )
    return NO_BRANCHES


def _names(names: Any, key: str) -> tuple[str, ...]:
    if not isinstance(names, (list, tuple)):
        raise malformed(DECISION_KEY, f"needs '{key}', a list of step names; found {describe(names)}")
    if not names:
        raise malformed(DECISION_KEY, f"is create_steps with an empty '{key}'", "no_branches creates none")
    for index, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise malformed(DECISION_KEY, f"{key}[{index}] must be the name of a step, found {describe(name)}")
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class ExpansionLimits:
    """Limits of a task's expansion. A decision's depth counts the decisions above it and itself."""

    decisions: DecisionPoints = DecisionPoints.for_single_process()
    batches: BatchProcessing = BatchProcessing.for_single_process()
    """All batches are created in one transaction, whose time the database limits."""


DEFAULT_LIMITS = ExpansionLimits()


def check_depth(growth: GraphDelta, limits: ExpansionLimits) -> list[str]:
    """Return warnings about a decision's depth. Raises `OutcomeError` if it is above the limit."""
    if growth.parent.rules:
        return []
    depth, most = _depth(growth), limits.decisions.max_decision_depth
    if depth > most:
        raise OutcomeError(
            OutcomeProblem.TOO_DEEP,
            f"'{growth.parent.name}' is decision number {depth} on its way; the limit is {most}",
            hint="raise orchestration.decision_points.max_decision_depth, or decide more in one step",
        )
    warning = f"'{growth.parent.name}' is decision number {depth} of at most {most} on its way"
    return [warning] if depth >= limits.decisions.warn_threshold_depth else []


def _depth(growth: GraphDelta) -> int:
    """Return the length of the longest chain of existing decisions down to the parent, including it."""
    depths: dict[str, int] = {}
    for step in growth.plan.steps:
        decides = step.type.creates is Creates.BRANCHES and not step.rules  # the compiler bounds the depth of rules
        counts = decides and growth.exists(step.name)
        depths[step.name] = counts + max((depths[name] for name in step.depends_on), default=0)
    return depths[growth.parent.name] if growth.exists(growth.parent.name) else 1


def check_names(growth: GraphDelta, decision: ParsedDecision, limits: ExpansionLimits) -> list[str]:
    """Return warnings about names that change nothing. Raises `OutcomeError` for names that cannot be created here."""
    parent, count = growth.parent, len(decision.step_names)
    if count > limits.decisions.max_steps_per_decision and not parent.rules:
        raise OutcomeError(
            OutcomeProblem.TOO_MANY_STEPS,
            f"'{parent.name}' names {count} steps, at most {limits.decisions.max_steps_per_decision} are allowed",
            hint="raise orchestration.decision_points.max_steps_per_decision, or use a batchable step",
        )
    warnings = [_check_name(growth, name) for name in decision.step_names]
    if count >= limits.decisions.warn_threshold_steps and not parent.rules:
        warnings.append(f"'{parent.name}' names {count} steps; the limit is {limits.decisions.max_steps_per_decision}")
    return [warning for warning in warnings if warning]


def _check_name(growth: GraphDelta, name: str) -> str | None:
    parent, candidates = growth.parent, _candidates(growth)
    entry = growth.plan.entries.get(name, name)
    step = growth.plan.by_name.get(name if entry == parent.name else entry)
    if step is None:
        raise OutcomeError(
            OutcomeProblem.UNKNOWN_STEP,
            f"'{parent.name}' names the step '{name}', which the template does not have",
            hint=did_you_mean(name, candidates),
        )
    if step.type.is_pattern:
        raise _not_creatable(parent, name, f"is a {step.type}: only its batchable step creates it", candidates)
    name = step.name
    if growth.exists(name):
        return f"'{parent.name}' names '{name}', which exists already; nothing changes"
    if name not in growth.plan.below.of(parent.name):
        raise _not_creatable(parent, name, "is not below it in the template", candidates)
    if step.type.converges:
        return f"'{parent.name}' names '{name}', a convergence; Tasker creates it automatically after the decisions"
    return None


def _not_creatable(parent: StepPlan, name: str, why: str, candidates: tuple[str, ...]) -> OutcomeError:
    hint = f"'{parent.name}' may name: {', '.join(candidates)}"
    return OutcomeError(OutcomeProblem.NOT_CREATABLE, f"'{parent.name}' names '{name}', which {why}", hint=hint)


def _candidates(growth: GraphDelta) -> tuple[str, ...]:
    """Return the branches of the decision: its direct dependents that are created only when named."""
    below = [growth.plan.by_name[name] for name in growth.plan.dependents[growth.parent.name]]
    return tuple(step.made_for or step.name for step in below if step.type.is_plain)


def check_batches(parent: StepPlan, outcome: ParsedBatches, limits: ExpansionLimits) -> None:
    """Raise `OutcomeError` for more batches than one step may have."""
    count = len(outcome.cursors)
    if count > limits.batches.max_batches_per_step:
        raise OutcomeError(
            OutcomeProblem.TOO_MANY_STEPS,
            f"'{parent.name}' cuts {count} batches, at most {limits.batches.max_batches_per_step} are allowed",
            hint="cut larger batches, or raise orchestration.batch_processing.max_batches_per_step",
        )


def worker_pattern(growth: GraphDelta, outcome: ParsedBatches) -> tuple[str | None, list[str]]:
    """Return the batch worker step named by the outcome, or by default the first one below the parent, and warnings.

    Raises `OutcomeError` if the named step is not a batch worker below the parent.
    """
    by_name, parent = growth.plan.by_name, growth.parent
    patterns = [name for name in growth.plan.dependents[parent.name] if by_name[name].type.is_pattern]
    if outcome.pattern is None:
        several = [f"'{parent.name}' has several batch_worker steps; the placeholder is made from the first"]
        return next(iter(patterns), None), several if len(patterns) > 1 else []
    if outcome.pattern not in patterns:
        problem = OutcomeProblem.NOT_CREATABLE if outcome.pattern in by_name else OutcomeProblem.UNKNOWN_STEP
        raise OutcomeError(
            problem,
            f"'{parent.name}' names the worker step '{outcome.pattern}', which is no batch_worker step below it",
            hint=did_you_mean(outcome.pattern, patterns) if patterns else "add a batch_worker step that depends on it",
        )
    return outcome.pattern, []
