"""Compiled rules and lists of steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tasker.dataclasses import dataclass

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
        if step.has_handler or len(step.depends_on) != 1 or step.publishes_events or _waits(step):
            continue
        parent = plan.by_name[step.depends_on[0]]
        if not parent.type.expands and not parent.type.is_pattern:
            below[parent.name] = (*below.get(parent.name, ()), step)
    return below


def _waits(step: StepPlan) -> bool:
    return step.wait is not None or bool(
        step.delay_seconds or step.not_before or step.limits or step.requires or step.slots > 1
    )
