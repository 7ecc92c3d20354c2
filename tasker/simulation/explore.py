"""Exploration: one run for every way through a template, and for failures on each way.

Each step that decides is made to decide every way that it can: branches, rules, `when`, and none, one or many batches.
Handlers are not called, and inputs and conditions are not evaluated: what they can come to is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import combinations
from typing import Any, NamedTuple

from tasker.dataclasses import dataclass
from tasker.engine.states.task import TERMINAL
from tasker.handlers.claims import Failure
from tasker.handlers.evaluated_steps import RULE
from tasker.simulation.coverage import (
    APPROVED,
    FAILED,
    Coverage,
    Item,
    branches_of,
    decisions_of,
    is_decided_by_persons,
)
from tasker.simulation.mocks import batches, decision
from tasker.simulation.run import SimulatedTask
from tasker.simulation.samples import sample
from tasker.simulation.steps import AttemptOutcome, SimulatedStep
from tasker.template.generated_steps import RESULTS
from tasker.template.plan import Plan, StepPlan
from tasker.template.step_types import Creates

MOST_RUNS = 10_000
"""Number of runs after which an exploration stops."""
SUBSETS_BELOW = 4
"""Number of branches up to which a decision takes each combination of them."""
_START = datetime(2026, 1, 1, tzinfo=UTC)
_FAILURE = Failure("explored", "explored_failure", retryable=True)
_PERMANENT = Failure("explored", "explored_failure", retryable=False)


Failing = Callable[[int], Failure | None]
"""Returns how an attempt fails, by its number; None: it does not."""


def _once(attempt: int) -> Failure | None:
    return _FAILURE if attempt == 1 else None


def _always(attempt: int) -> Failure | None:
    return _PERMANENT


class Choice(NamedTuple):
    """One way in which a step decides, with its result."""

    words: str
    result: Any


@dataclass(frozen=True, slots=True)
class Finding:
    """Problem that runs have shown: of a step, with its place in the file."""

    step: str
    message: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Exploration:
    """Result of an exploration."""

    routes: int
    """Ways through the graph."""
    runs: int
    findings: tuple[Finding, ...]
    coverage: Coverage
    is_whole: bool
    """False if it stopped after the maximum number of runs."""
    undone: Mapping[str, tuple[str, ...]]
    """For each step whose failure starts a compensation, the steps that are then undone, in that order."""


class _ForcedCalls:
    """Calls of steps that decide as chosen, fail as told, and otherwise return nothing.

    `undecided` is the first step that was to decide and has no choice.
    """

    def __init__(self, choices: Mapping[str, Choice], failing: Mapping[str, Callable[[int], Failure | None]]) -> None:
        self._choices, self._failing = choices, failing
        self.undecided: StepPlan | None = None

    def __call__(self, task: SimulatedTask, step: SimulatedStep) -> AttemptOutcome:
        name = step.plan.name
        if step.plan.wait is not None:  # its failure is that nothing comes in time, or that children fail
            failure = self._failing[name](step.attempts) if name in self._failing else None
            if failure:
                return AttemptOutcome(_PERMANENT)
            if step.plan.type.starts_children:
                return AttemptOutcome(sample(step.plan.result_schema))
            if is_decided_by_persons(step.plan) and name not in self._choices:
                self.undecided = self.undecided or step.plan
                return AttemptOutcome(next(choices(task.plan, step.plan)).result)
            decided = self._choices[name].result if name in self._choices else {"payload": {}, "events": []}
            return AttemptOutcome(decided)
        if name in self._failing and (failure := self._failing[name](step.attempts)):
            return AttemptOutcome(failure)
        if step.plan.type.expands:
            if name not in self._choices:
                self.undecided = self.undecided or step.plan
                return AttemptOutcome(next(choices(task.plan, step.plan)).result)
            return AttemptOutcome(self._choices[name].result)
        return AttemptOutcome({RESULTS: []} if step.plan.for_each is not None else {})


def choices(plan: Plan, step: StepPlan) -> Iterator[Choice]:
    """Yield every way in which a step can decide, or persons about it."""
    if step.wait is not None:
        for word in decisions_of(step):
            yield Choice(word, {"approved": word == APPROVED, "by": "", "form": {}, "comment": "", "votes": []})
        return
    if step.type.creates is Creates.BATCHES:
        for count in (0, 1, 3):
            yield Choice(f"{count} batches", batches(plan, step, count))
        return
    if step.rules:
        for number, rule in enumerate(step.rules, 1):
            yield Choice(f"rule {number}", {**decision(rule.then), RULE: number})
        if step.rules[-1].when is not None:
            yield Choice("no rule", {**decision(()), RULE: None})
        return
    names = branches_of(plan, step)
    sizes = range(1, len(names) + 1) if len(names) <= SUBSETS_BELOW else sorted({1, len(names)})
    yield Choice("no branch", decision(()))
    for size in sizes:
        for chosen in combinations(names, size):
            yield Choice(" and ".join(chosen), decision(chosen))


def explore(plan: Plan, origins: Mapping[str, str] | None = None, most_runs: int = MOST_RUNS) -> Exploration:
    """Run every way through the template's graph, and on each way every failure and every pair of them.

    `origins` are the places of the steps in the template's file.
    """
    explorer = _Explorer(plan, Coverage(plan, origins or {}), most_runs)
    explorer.explore()
    return Exploration(
        explorer.routes,
        explorer.runs,
        tuple(explorer.findings()),
        explorer.coverage,
        explorer.runs < most_runs,
        explorer.undone,
    )


class _Explorer:
    def __init__(self, plan: Plan, coverage: Coverage, most_runs: int) -> None:
        self._plan, self.coverage, self._most_runs = plan, coverage, most_runs
        self.routes = self.runs = 0
        self._problems: dict[tuple[str, str], str] = {}
        self.undone: dict[str, tuple[str, ...]] = {}
        self._joined: dict[str, int] = {}
        """Largest number of parents that a convergence had."""

    def explore(self) -> None:
        todo: list[dict[str, Choice]] = [{}]
        reached: list[tuple[dict[str, Choice], list[str]]] = []
        while todo and self.runs < self._most_runs:
            chosen = todo.pop()
            calls = _ForcedCalls(chosen, {})
            task = self._run(calls)
            if calls.undecided is not None:
                step = calls.undecided
                todo += [{**chosen, step.name: choice} for choice in choices(self._plan, step)]
                continue
            self.runs += 1
            self.routes += 1
            self.coverage.add(task)
            self._look(task, chosen)
            reached.append((chosen, list({step.plan.name: None for step in task.steps.values()})))
        for chosen, names in reached:
            self._fail_on(chosen, names)

    def _fail_on(self, chosen: Mapping[str, Choice], names: list[str]) -> None:
        """Run one way again, with each of its steps failing once, failing for good, and with each pair failing.

        So do the steps that exist only after such a failure, each compensation in one run only.
        """
        for name in names:
            self._try(chosen, {name: _once})
            if (task := self._try(chosen, {name: _always})) is None:
                return
            if task.phases.outcome is not None:
                undoing = [step for step in task.steps.values() if step.plan.undoes is not None]
                undoing.sort(key=lambda step: (step.started_ms or 0, step.first_attempt))
                self.undone.setdefault(name, tuple(str(step.plan.undoes) for step in undoing))
            new = {step.plan.name: step.plan for step in task.steps.values() if step.plan.name not in names}
            for other in new.values():
                if other.undoes is None or Item(other.name, FAILED) not in self.coverage.shown:
                    self._try(chosen, {name: _always, other.name: _once})
                    self._try(chosen, {name: _always, other.name: _always})
        for pair in combinations(names, 2):
            self._try(chosen, dict.fromkeys(pair, _always))

    def _try(self, chosen: Mapping[str, Choice], failing: Mapping[str, Failing]) -> SimulatedTask | None:
        """Run one way with failures; None once there were as many runs as are allowed."""
        if self.runs >= self._most_runs:
            return None
        self.runs += 1
        task = self._run(_ForcedCalls(chosen, failing))
        self.coverage.add(task)
        self._look(task, chosen)
        return task

    def _run(self, calls: _ForcedCalls) -> SimulatedTask:
        task = SimulatedTask(self._plan, {}, calls, at=_START)
        task.run()
        return task

    def _look(self, task: SimulatedTask, chosen: Mapping[str, Choice]) -> None:
        words = ", ".join([f"{name} decides {choice.words}" for name, choice in chosen.items()])
        when = f" (when {words})" if words else ""
        if task.state not in TERMINAL:
            stuck = next(step.name for step in task.steps.values() if step.ended_ms is None)
            self._problems.setdefault((stuck, "stuck"), f"it never ends: the task stays in {task.state}{when}")
        for step in task.steps.values():
            if step.plan.type.converges:
                self._joined[step.plan.name] = max(self._joined.get(step.plan.name, 0), len(step.parents))
            for each in step.failures:
                if each.failure.error_type != _FAILURE.error_type:
                    self._problems.setdefault((step.plan.name, each.failure.message), each.failure.message + when)

    def findings(self) -> Iterator[Finding]:
        """Yield the problems, in the order of the template's steps."""
        for step in self._plan.steps:
            name = step.made_for or step.name
            place = self.coverage.place(next(item for item in self.coverage.items if item.step == name))
            for (of, _), message in self._problems.items():
                if of == step.name:
                    yield Finding(name, message, place)
            if step.made_for is None and not any(item.step == name for item in self.coverage.shown):
                yield Finding(name, "no path leads to it", place)
            elif step.type.converges and self._joined.get(step.name, 2) < 2 and len(step.depends_on) > 1:
                yield Finding(name, "it never joins more than one step: `type: standard` is enough", place)
