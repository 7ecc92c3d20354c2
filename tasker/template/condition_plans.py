"""Compiled rules and lists of steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tasker.dataclasses import dataclass
from tasker.template.effects import PURE
from tasker.template.failure_words import FAIL_TASK
from tasker.template.step_types import DEFAULT

if TYPE_CHECKING:
    from tasker.template.plan import Plan, StepPlan


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule of a decision without a handler: the first one whose condition is true decides."""

    then: tuple[str, ...]
    """Steps to create."""
    when: str | None = None
    """Expression; None: the rule always applies."""
    because: str | None = None
    """Text of the reason, which may contain `${...}`."""


@dataclass(frozen=True, slots=True)
class ForEach:
    """List whose items a `batch_worker` step processes, one call of its handler for each."""

    items: str
    """Expression of the list."""
    name: str = "item"
    """Name of the item in the expressions of `inputs`."""
    batch_size: int = 1
    """Items of one instance of the step."""
    on_error: str = "fail"
    """`fail`, or `collect`: the failure of an item becomes its result."""
    result_schema: Mapping[str, Any] | None = None
    """Schema of the handler's result for one item; that of the step describes the list of all."""


def steps_evaluated_below(plan: Plan) -> dict[str, tuple[StepPlan, ...]]:
    """Return, by step, the steps without a handler that its worker can evaluate with its result.

    They depend on that step alone, wait for nothing else, and publish no events. Those below a decision or batchable
    step are left out: its result creates them.
    """
    below: dict[str, tuple[StepPlan, ...]] = {}
    for step in plan.steps:
        if step.has_handler or len(step.depends_on) != 1 or step.publishes_events or _waits(plan, step):
            continue
        parent = plan.by_name[step.depends_on[0]]
        if not parent.type.expands and not parent.type.is_pattern:
            below[parent.name] = (*below.get(parent.name, ()), step)
    return below


def steps_in_chains(plan: Plan) -> dict[str, StepPlan]:
    """Return, by step, the only step below it, if a worker may run that one before the result above it is stored.

    Both must be `pure`, or say nothing of their effect and have handlers that do. The step below depends on that step
    alone, waits for nothing else, publishes no events, and its failure has no meaning of its own.
    """
    chains: dict[str, StepPlan] = {}
    for step in plan.steps:
        below = plan.dependents[step.name]
        if len(below) != 1 or not _may_be_in_chain(step) or not _may_be_in_chain(following := plan.by_name[below[0]]):
            continue
        tells = following.publishes_events or following.circuit_breaker is not None
        if len(following.depends_on) == 1 and not tells and not _waits(plan, following):
            chains[step.name] = following
    return chains


def _may_be_in_chain(step: StepPlan) -> bool:
    return step.effect in (None, PURE) and step.has_handler and step.type is DEFAULT and step.for_each is None


def _waits(plan: Plan, step: StepPlan) -> bool:
    return has_gates(plan, step) or bool(step.requires or step.slots > 1)


def has_gates(plan: Plan, step: StepPlan) -> bool:
    """Return True if the database has rules about the start or the end of the step (`tasker.gates_of`).

    It refuses to store such a step together with the result above it.
    """
    of_step = step.wait is not None or step.at_rest or step.on_failure != FAIL_TASK
    return plan.concurrency is not None or of_step or bool(step.delay_seconds or step.not_before or step.limits)
