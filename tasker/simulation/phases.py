"""Phases of a simulated task at rest: compensations, then the steps of `finally`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tasker.engine.expansion.compensations import plan_compensation
from tasker.engine.expansion.graph import NewStep
from tasker.engine.states.step import StepState
from tasker.engine.states.task import TaskState
from tasker.template.failure_words import COMPENSATE, OPTIONAL, WORDS
from tasker.template.plan import Plan

if TYPE_CHECKING:
    from tasker.simulation.steps import SimulatedStep

UNDOING, LAST = "undoing", "last"


class Phases:
    """Phases after the steps of a task have come to rest, as `tasker.after_rest` decides them."""

    def __init__(self, plan: Plan, steps: Mapping[str, SimulatedStep]) -> None:
        self._plan, self._steps = plan, steps
        self.phase: str | None = None
        self.outcome: str | None = None
        """`compensating`, `compensated`, `compensation_failed`, or None."""
        self.cancelled = False

    def next(self, target: TaskState) -> list[NewStep] | None:
        """Return the steps of the phase that begins, which may be none; None: the task ends."""
        if self.phase is None and target is TaskState.ERROR and not self.cancelled and self._starts_undoing():
            self.phase, self.outcome = UNDOING, "compensating"
            complete = [step.name for step in self._steps.values() if step.state is StepState.COMPLETE]
            parents = {step.name: step.parents for step in self._steps.values()}
            return plan_compensation(self._plan, complete, parents)
        if self.phase is UNDOING:
            undoing = [step for step in self._steps.values() if step.plan.undoes is not None]
            done = all(step.is_satisfied for step in undoing)
            self.outcome = "compensated" if done else "compensation_failed"
        last = [NewStep(step.name, step.name, ()) for step in self._plan.steps if step.at_rest]
        if self.phase is LAST or not last:
            return None
        self.phase = LAST
        return last

    def end(self, target: TaskState) -> TaskState:
        """Return the state in which the task ends; `target` is that of its steps."""
        return TaskState.CANCELLED if self.cancelled else target

    def at_rest(self) -> dict[str, Any] | None:
        """Return what the steps of a phase read as `context.outcome`; None in no phase."""
        if self.phase is None:
            return None
        forward = [step for step in self._steps.values() if not step.plan.is_late]
        failed = not all(step.is_satisfied for step in forward)
        state = "cancelled" if self.cancelled else "error" if failed else "complete"
        partial = not failed and any(step.settled not in (None, WORDS[OPTIONAL].letter) for step in forward)
        return {"state": state, "outcome": self.outcome or ("partial" if partial else None)}

    def _starts_undoing(self) -> bool:
        return any(
            step.state is StepState.ERROR and step.settled is None and step.plan.on_failure == COMPENSATE
            for step in self._steps.values()
        )
