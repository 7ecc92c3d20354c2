"""The pieces of the naive model: steps and tasks, what attempts come to, what a caller could run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tasker.template.plan import Plan, RetryPolicy, StepPlan
from tests.support.model.graph import CHOOSERS, Present

Key = tuple[str, str]
"""A step: the id of its task and its name."""
Item = Mapping[str, Any]
DONE = ("complete", "resolved_manually")
ENDED = (*DONE, "error", "cancelled")
PARKED = ("enqueued_for_orchestration", "enqueued_as_error_for_orchestration")
QUEUED = "enqueued"
RUNS = "in_progress"
LIMIT_MS, GRACE_MS = 30_000, 10_000
HINT_GRACE_MS, PARK_GRACE_MS = 5_000, 5_000


@dataclass(frozen=True)
class Ending:
    """What an attempt came to: a result, or a failure."""

    result: Any = None
    failed: bool = False
    retryable: bool = True
    retry_after: float | None = None


@dataclass(eq=False, repr=False)
class Step:
    """A step; `since` is when it was parked or held, `hinted` when and how often its hint was sent.

    `due` is until when it waits: for its retry, or, pending, for its delay or the time of its task. `paused` marks a
    held step that waits for the end of a pause.
    """

    task: Task
    name: str
    plan: StepPlan
    parents: set[str]
    state: str = "pending"
    held: bool = False
    paused: bool = False
    token: int = 0
    attempts: int = 0
    worker: str | None = None
    deadline: int | None = None
    due: int | None = None
    since: int = 0
    hinted: tuple[int, int] = (0, 0)
    parked: tuple[str, int | None] | None = None
    result: Any = None
    checkpoint: Any = None
    claims: int = 0
    failures: int = 0
    accepted: int = 0

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"<{self.name} of {self.task.id[24:30]} {self.state}>")

    @property
    def unmet(self) -> int:
        return sum(self.task.steps[parent].state not in DONE for parent in self.parents)

    @property
    def key(self) -> Key:
        return self.task.id, self.name

    @property
    def timed(self) -> bool:
        """Whether it is ready but for its time: it is not held then."""
        return self.state == "pending" and self.due is not None

    def stop(self, state: str, *, fence: bool = False) -> None:
        """It holds no claim any more."""
        self.state, self.held, self.paused = state, False, False
        self.due, self.deadline, self.parked = None, None, None
        self.token += fence


@dataclass(eq=False, repr=False)
class Task:
    id: str
    template: int
    plan: Plan
    priority: int
    created: int
    state: str = "open"
    expires: int | None = None
    steps: dict[str, Step] = field(default_factory=dict)

    def present(self) -> Present:
        undecided = {s.plan.name for s in self.steps.values() if s.plan.type in CHOOSERS and s.state not in DONE}
        return Present({name: step.plan.name for name, step in self.steps.items()}, undecided)

    def add(self, name: str, template: str, parents: set[str]) -> None:
        self.steps[name] = Step(self, name, self.plan.by_name[template], parents)

    def should_be(self) -> str:
        """The final state, when nothing is left that moves by itself."""
        steps = self.steps.values()
        if all(step.state in DONE for step in steps):
            return "complete"
        moving = (QUEUED, RUNS, "waiting_for_retry", *PARKED)
        stuck = not any(step.state in moving or step.held or step.timed for step in steps)
        return "error" if stuck and any(step.state == "error" for step in steps) else "open"


@dataclass(frozen=True)
class Hands:
    """What the caller of a write could run next."""

    worker: str | None = None
    slots: int = 0
    window: int = 2000
    namespaces: tuple[str, ...] = ()
    unserved: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pause:
    """What must not start: a namespace, or of it a template, a step of a template, a task."""

    namespace: str
    template: str | None = None
    step: str | None = None
    task: str | None = None

    def holds(self, step: Step) -> bool:
        plan = step.task.plan
        found = (plan.namespace, plan.name, step.plan.name, step.task.id)
        return all(mine in (None, its) for mine, its in zip(self.parts, found, strict=True))

    @property
    def parts(self) -> tuple[str | None, ...]:
        return self.namespace, self.template, self.step, self.task

    @property
    def args(self) -> dict[str, Any]:
        """The pause as the engine's functions take it."""
        parts = {"namespace": self.namespace, "template": self.template, "step": self.step}
        target = {"task": self.task} if self.task else {name: part for name, part in parts.items() if part}
        return {**target, "slice": 10**9}

    @property
    def scope(self) -> str:
        return next(name for name in ("task", "step", "template", "namespace") if getattr(self, name))


def pauses_of(step: Step) -> list[Pause]:
    """Every pause that would hold this step."""
    plan = step.task.plan
    return [
        Pause(plan.namespace),
        Pause(plan.namespace, plan.name),
        Pause(plan.namespace, plan.name, step.plan.name),
        Pause(plan.namespace, task=step.task.id),
    ]


def serves(hands: Hands, step: Step) -> bool:
    return f"{step.task.template}:{step.plan.ordinal}" not in hands.unserved


def failure(policy: RetryPolicy, attempt: int, ending: Ending) -> tuple[str, int | None]:
    """What follows a failure: another attempt after so many milliseconds, or the end of the step."""
    if not ending.retryable or not policy.retryable or attempt >= max(1, policy.max_attempts):
        return "fail", None
    if ending.retry_after is not None:
        return "retry", int(ending.retry_after * 1000)
    delays = {"none": 0, "fixed": policy.backoff_base_ms, "exponential": policy.backoff_base_ms * 2 ** (attempt - 1)}
    return "retry", min(delays[policy.backoff], policy.max_backoff_ms)


def rank(step: Step) -> float:
    """When a held step is released: the longer it waits and the more urgent its task is, the sooner."""
    return step.since / 1000 - step.task.priority * 600
