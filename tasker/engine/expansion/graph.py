"""Steps and edges that an expansion adds to those that exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from tasker.dataclasses import dataclass
from tasker.engine.expansion.batches import instance_number
from tasker.template.failure_words import DEAD
from tasker.template.plan import Plan, StepPlan


@dataclass(frozen=True, slots=True)
class ExistingStep:
    """Existing step of a task: its name, the template step it was made from, and whether it is undecided.

    `open` is True until the step is complete or resolved: an open decision or batchable step has not decided, and a
    step in `error` may still be repaired.
    """

    name: str
    template_step: str
    open: bool
    settled: str | None = None
    """Letter of a step without which the task went on (`tasker.template.failure_words`)."""
    pending: bool = False

    @property
    def dead(self) -> bool:
        """True if the steps that depend on it do not run: it failed or was skipped."""
        return self.settled in DEAD


@dataclass(frozen=True, slots=True)
class NewStep:
    """Step to create. `parents` are names of steps that exist or are created together with it."""

    name: str
    template_step: str
    parents: tuple[str, ...]
    inputs: Mapping[str, Any] | None = None
    joins: tuple[str, ...] = ()
    """Existing pending steps that wait for this one, too."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """Steps that the completion of one decision or batchable step adds to the task, in topological order."""

    steps: tuple[NewStep, ...] = ()
    warnings: tuple[str, ...] = ()


Existing = Sequence[ExistingStep]


class GraphDelta:
    """Existing steps, by the template step they were made from, and the steps that this expansion adds."""

    def __init__(self, plan: Plan, parent: StepPlan, existing: Existing, instance: str | None = None) -> None:
        self.plan, self.parent, self.name = plan, parent, instance or parent.name
        self.new: list[NewStep] = []
        self._instances: dict[str, list[str]] = {}
        self._dead = {step.name for step in existing if step.dead}
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

    @property
    def has_failures(self) -> bool:
        """True if there is a step whose dependents do not run."""
        return bool(self._dead)

    def has_dead(self, names: Iterable[str]) -> bool:
        """Return whether one of these template steps has an instance whose dependents do not run."""
        return bool(self._dead) and not self._dead.isdisjoint(self.instances_of(names))

    def are_dead(self, instances: Iterable[str]) -> bool:
        """Return whether the dependents of all these steps do not run."""
        return self._dead.issuperset(instances)

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
