"""Checks of the choices of decision and batchable steps, and the limits of expansion."""

from __future__ import annotations

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults import STEPS_PER_DECISION, WARN_STEPS_PER_DECISION
from tasker.contracts.defaults.single_process import SINGLE_PROCESS_DECISION_DEPTH, SINGLE_PROCESS_WARN_DECISION_DEPTH
from tasker.contracts.plan import StepPlan
from tasker.contracts.rules.limits import MOST_BATCHES
from tasker.contracts.step_types import Creates
from tasker.lifecycle.batches import ParsedBatches
from tasker.lifecycle.decisions import ParsedDecision
from tasker.lifecycle.growth import GraphDelta
from tasker.lifecycle.outcomes import OutcomeError, OutcomeProblem, did_you_mean


@dataclass(frozen=True, slots=True)
class ExpansionLimits:
    """Limits of a task's expansion. A decision's depth counts the decisions above it and itself."""

    max_decision_depth: int = SINGLE_PROCESS_DECISION_DEPTH
    warn_decision_depth: int = SINGLE_PROCESS_WARN_DECISION_DEPTH
    max_steps_per_decision: int = STEPS_PER_DECISION
    warn_steps_per_decision: int = WARN_STEPS_PER_DECISION
    decisions_enabled: bool = True
    batches_enabled: bool = True
    max_batches_per_step: int = MOST_BATCHES
    """All batches are created in one transaction, whose time the database limits."""


DEFAULT_LIMITS = ExpansionLimits()


def check_depth(growth: GraphDelta, limits: ExpansionLimits) -> list[str]:
    """Return warnings about a decision's depth. Raises `OutcomeError` if it is above the limit."""
    depth = _depth(growth)
    if depth > limits.max_decision_depth:
        raise OutcomeError(
            OutcomeProblem.TOO_DEEP,
            f"'{growth.parent.name}' is decision number {depth} on its way; the limit is {limits.max_decision_depth}",
            hint="raise orchestration.decision_points.max_decision_depth, or decide more in one step",
        )
    warning = f"'{growth.parent.name}' is decision number {depth} of at most {limits.max_decision_depth} on its way"
    return [warning] if depth >= limits.warn_decision_depth else []


def _depth(growth: GraphDelta) -> int:
    """Return the length of the longest chain of existing decisions down to the parent, including it."""
    depths: dict[str, int] = {}
    for step in growth.plan.steps:
        counts = step.type.creates is Creates.BRANCHES and growth.exists(step.name)
        depths[step.name] = counts + max((depths[name] for name in step.depends_on), default=0)
    return depths[growth.parent.name] if growth.exists(growth.parent.name) else 1


def check_names(growth: GraphDelta, decision: ParsedDecision, limits: ExpansionLimits) -> list[str]:
    """Return warnings about names that change nothing. Raises `OutcomeError` for names that cannot be created here."""
    parent, count = growth.parent, len(decision.step_names)
    if count > limits.max_steps_per_decision:
        raise OutcomeError(
            OutcomeProblem.TOO_MANY_STEPS,
            f"'{parent.name}' names {count} steps, at most {limits.max_steps_per_decision} are allowed",
            hint="raise orchestration.decision_points.max_steps_per_decision, or use a batchable step",
        )
    warnings = [_check_name(growth, name) for name in decision.step_names]
    if count >= limits.warn_steps_per_decision:
        warnings.append(f"'{parent.name}' names {count} steps; the limit is {limits.max_steps_per_decision}")
    return [warning for warning in warnings if warning]


def _check_name(growth: GraphDelta, name: str) -> str | None:
    parent, step = growth.parent, growth.plan.by_name.get(name)
    candidates = _candidates(growth)
    if step is None:
        raise OutcomeError(
            OutcomeProblem.UNKNOWN_STEP,
            f"'{parent.name}' names the step '{name}', which the template does not have",
            hint=did_you_mean(name, candidates),
        )
    if step.type.is_pattern:
        raise _not_creatable(parent, name, f"is a {step.type}: only its batchable step creates it", candidates)
    if growth.exists(name):
        return f"'{parent.name}' names '{name}', which exists already; nothing changes"
    if name not in growth.plan.below.of(parent.name):
        raise _not_creatable(parent, name, "is not below it in the template", candidates)
    if step.type.converges:
        return f"'{parent.name}' names '{name}', a convergence; it is created by itself when its time has come"
    return None


def _not_creatable(parent: StepPlan, name: str, why: str, candidates: tuple[str, ...]) -> OutcomeError:
    hint = f"'{parent.name}' may name: {', '.join(candidates)}"
    return OutcomeError(OutcomeProblem.NOT_CREATABLE, f"'{parent.name}' names '{name}', which {why}", hint=hint)


def _candidates(growth: GraphDelta) -> tuple[str, ...]:
    """Return the branches of the decision: its direct dependents that are created only when named."""
    by_name = growth.plan.by_name
    return tuple(name for name in growth.plan.dependents[growth.parent.name] if by_name[name].type.is_plain)


def check_batches(parent: StepPlan, outcome: ParsedBatches, limits: ExpansionLimits) -> None:
    """Raise `OutcomeError` for more batches than one step may have."""
    count = len(outcome.cursors)
    if count > limits.max_batches_per_step:
        raise OutcomeError(
            OutcomeProblem.TOO_MANY_STEPS,
            f"'{parent.name}' cuts {count} batches, at most {limits.max_batches_per_step} are allowed",
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
