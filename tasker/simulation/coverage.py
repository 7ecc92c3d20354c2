"""Coverage of a template's graph: what there is to run, and what a run has run of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tasker.handlers.evaluated_steps import RULE
from tasker.handlers.outcome_forms import BATCH_KEY, DECISION_KEY, BatchType
from tasker.simulation.run import SimulatedTask
from tasker.simulation.steps import DONE, SimulatedStep
from tasker.template.plan import Plan, StepPlan
from tasker.template.step_types import Creates

NO_BRANCH, FAILED, RETRIED = "(no branch)", "fails", "retried"
BATCHES = ("no batches", "one batch", "many batches")


class Item(NamedTuple):
    """One thing of a step that a run can show: that it ran, took a branch, applied a rule, cut batches, failed."""

    step: str
    """Step as its author wrote it."""
    what: str = ""
    """Empty: the step ran."""

    def __str__(self) -> str:
        return f"{self.step}: {self.what}" if self.what else self.step


APPROVED, REJECTED = "approved", "rejected"
"""Decisions of an approval; its timeout is its failure."""


def is_decided_by_persons(step: StepPlan) -> bool:
    """Return whether the step is an approval."""
    return step.wait is not None and step.wait.get("on") == "person"


def decisions_of(step: StepPlan) -> tuple[str, ...]:
    """Return the decisions with which a step completes; a rejection may be a failure."""
    if step.wait is None or not is_decided_by_persons(step):
        return ()
    return (APPROVED, REJECTED) if step.wait["on_reject"] == "complete" else (APPROVED,)


def items_of(plan: Plan) -> list[Item]:
    """Return everything that runs of a template can show, in the order of its steps."""
    return [item for step in plan.steps for item in _items(plan, step)]


def _items(plan: Plan, step: StepPlan) -> Iterator[Item]:
    name = step.made_for or step.name
    if step.made_for is None:
        yield Item(name)
        if step.has_handler or step.is_ended_by_others:
            yield Item(name, FAILED)
            yield from (Item(name, what) for what in decisions_of(step))
            if step.has_handler and step.retry.retryable and step.retry.max_attempts > 1:
                yield Item(name, RETRIED)
    if step.type.creates is Creates.BATCHES:
        yield from (Item(name, what) for what in BATCHES)
    elif step.made_for is not None and step.rules:
        yield from (Item(name, "`when` is true"), Item(name, "`when` is false"))
    elif step.rules:
        yield from (Item(name, f"rule {number}") for number in range(1, len(step.rules) + 1))
        if step.rules[-1].when is not None:
            yield Item(name, "no rule applies")
    elif step.type.creates is Creates.BRANCHES:
        yield from (Item(name, f"-> {branch}") for branch in branches_of(plan, step))
        yield Item(name, f"-> {NO_BRANCH}")


def branches_of(plan: Plan, step: StepPlan) -> list[str]:
    """Return the steps that a decision can create."""
    below = [plan.by_name[name] for name in plan.dependents[step.name]]
    names = [
        each.made_for or each.name
        for each in below
        if (each.type.is_plain or each.made_for is not None) and not each.is_late
    ]
    return list(dict.fromkeys(names))


def covered(task: SimulatedTask) -> set[Item]:
    """Return the items that a run has shown."""
    return {item for step in task.steps.values() for item in _shown(step)}


def _shown(step: SimulatedStep) -> Iterator[Item]:
    name = step.plan.made_for or step.plan.name
    if step.started_ms is None:
        return
    if step.plan.made_for is None:
        yield Item(name)
    if any(each.retry_in_ms is not None for each in step.failures):
        yield Item(name, RETRIED)
    if any(each.retry_in_ms is None for each in step.failures):
        yield Item(name, FAILED)
    if is_decided_by_persons(step.plan) and step.state in DONE and isinstance(step.result, Mapping):
        yield Item(name, APPROVED if step.result.get("approved") else REJECTED)
    if step.state in DONE and step.plan.type.expands and isinstance(step.result, Mapping):
        yield from (Item(name, what) for what in _decided(step, step.result))


def _decided(step: SimulatedStep, result: Mapping[str, Any]) -> Iterable[str]:
    if step.plan.type.creates is Creates.BATCHES:
        outcome = result.get(BATCH_KEY) or {}
        if outcome.get("type") == BatchType.NO_BATCHES.value:
            return [BATCHES[0]]
        return [BATCHES[1 if outcome.get("worker_count") == 1 else 2]]
    if step.plan.rules:
        rule = result.get(RULE)
        if step.plan.made_for is not None:
            return ["`when` is true" if rule else "`when` is false"]
        return [f"rule {rule}" if rule else "no rule applies"]
    outcome = result.get(DECISION_KEY) or {}
    names = outcome.get("step_names") or outcome.get("next_step_names") or (NO_BRANCH,)
    return [f"-> {name}" for name in names]


class Coverage:
    """Items of a template with those that its runs have shown.

    `origins` are the places of the steps in the template's file, as `file:line`.
    """

    def __init__(self, plan: Plan, origins: Mapping[str, str]) -> None:
        self.plan, self._origins = plan, origins
        self.items = items_of(plan)
        self.shown: set[Item] = set()

    def add(self, task: SimulatedTask) -> None:
        """Add what a run has shown."""
        self.shown |= covered(task)

    @property
    def missing(self) -> list[Item]:
        """Items that no run has shown."""
        return [item for item in self.items if item not in self.shown]

    @property
    def percent(self) -> float:
        """Share of the items that were shown."""
        return 100.0 * (len(self.items) - len(self.missing)) / max(1, len(self.items))

    def place(self, item: Item) -> str:
        """Return where the step of an item stands, as `file:line`; empty for a template without a file."""
        return self._origins.get(item.step, "")
