"""Graph of a task during one expansion: existing steps, new steps and undecided ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from tasker.contracts.expansion.graph import Existing, NewStep
from tasker.contracts.plan import Plan, StepPlan
from tasker.lifecycle.batches import instance_number


class GraphDelta:
    """Existing steps, by the template step they were made from, and the steps that this expansion adds."""

    def __init__(self, plan: Plan, parent: StepPlan, existing: Existing) -> None:
        self.plan, self.parent = plan, parent
        self.new: list[NewStep] = []
        self._instances: dict[str, list[str]] = {}
        for step in existing:
            self._instances.setdefault(step.template_step, []).append(step.name)
        for name, instances in self._instances.items():
            if plan.by_name[name].type.is_pattern:
                instances.sort(key=partial(instance_number, pattern=name))
        undecided = {
            step.template_step
            for step in existing
            if step.open and step.template_step != parent.name and plan.by_name[step.template_step].type.expands
        }
        self._undecided = plan.below.reached(list(undecided))

    def exists(self, name: str) -> bool:
        """Return whether the template step has at least one instance."""
        return name in self._instances

    def waits_for_decision(self, step: StepPlan) -> bool:
        """Return whether an existing ancestor may still create steps above this one."""
        return step.name in self._undecided

    def instances_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the existing steps of these template steps; for a pattern, all its workers."""
        return tuple(instance for name in names for instance in self._instances.get(name, ()))

    def add(
        self,
        step: StepPlan,
        parents: Iterable[str],
        *,
        name: str | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        """Create an instance of `step` below `parents` without duplicates; `name` defaults to the step's own."""
        created = NewStep(name or step.name, step.name, tuple(dict.fromkeys(parents)), inputs)
        self.new.append(created)
        self._instances.setdefault(step.name, []).append(created.name)
        if step.type.expands:
            self._undecided |= self.plan.below.reached([step.name], self._undecided)
