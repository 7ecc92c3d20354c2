"""The truth table of deferred convergence: what an outcome creates, and what each new step waits for.

The tests assert it, and `tools/lifecycle_docs.py` prints it into the documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tasker.engine.expansion.graph import ExistingStep
from tasker.template.plan import Plan
from tests.support.random_plans import (
    BATCHABLE,
    DECISION,
    DEFERRED,
    WORKER,
    Spec,
    build_plan,
    create_batches,
    create_steps,
)


@dataclass(frozen=True)
class Case:
    """One row: `parent` completes with `outcome` while `existing` are there; `created` waits for what it names."""

    plan: Plan
    parent: str
    outcome: Mapping[str, Any]
    created: Mapping[str, tuple[str, ...]]
    why: str
    done: tuple[str, ...] = ()
    """Steps that exist and are complete."""
    open: tuple[str, ...] = ()
    """Steps that exist and are not complete, besides `parent`."""
    warnings: tuple[str, ...] = field(default=())
    """Words that a warning must hold, one each."""

    @property
    def existing(self) -> list[ExistingStep]:
        """The task's steps at the time of the expansion."""
        opened = dict.fromkeys(self.done, False) | dict.fromkeys((*self.open, self.parent), True)
        return [ExistingStep(name, _template_step(self.plan, name), is_open) for name, is_open in opened.items()]


def _template_step(plan: Plan, name: str) -> str:
    return name if name in plan.by_name else name.rpartition("_")[0]


APPROVAL = build_plan(
    Spec("validate"),
    Spec("route", DECISION, ("validate",)),
    Spec("auto", depends_on=("route",)),
    Spec("manager", depends_on=("route",)),
    Spec("finance", depends_on=("route",)),
    Spec("finalize", DEFERRED, ("route", "auto", "manager", "finance")),
    Spec("notify", depends_on=("finalize",)),
)
UNLISTED = build_plan(
    Spec("route", DECISION),
    Spec("auto", depends_on=("route",)),
    Spec("manager", depends_on=("route",)),
    Spec("finalize", DEFERRED, ("auto", "manager")),
)
NESTED = build_plan(
    Spec("route", DECISION),
    Spec("simple", depends_on=("route",)),
    Spec("senior", depends_on=("route",)),
    Spec("compliance", DECISION, ("route", "senior")),
    Spec("legal", depends_on=("compliance",)),
    Spec("fraud", depends_on=("compliance",)),
    Spec("finalize", DEFERRED, ("route", "simple", "senior", "compliance", "legal", "fraud")),
)
TWO = build_plan(
    Spec("left", DECISION),
    Spec("right", DECISION),
    Spec("a", depends_on=("left",)),
    Spec("b", depends_on=("right",)),
    Spec("join", DEFERRED, ("a", "b")),
)
CSV = build_plan(
    Spec("analyze", BATCHABLE),
    Spec("process", WORKER, ("analyze",)),
    Spec("aggregate", DEFERRED, ("process",)),
    Spec("report", depends_on=("aggregate",)),
)
BRANCH = build_plan(
    Spec("route", DECISION),
    Spec("quick", depends_on=("route",)),
    Spec("analyze", BATCHABLE, ("route",)),
    Spec("process", WORKER, ("analyze",)),
    Spec("aggregate", DEFERRED, ("process",)),
    Spec("finish", DEFERRED, ("route", "quick", "aggregate")),
)

APPROVALS: tuple[Case, ...] = (
    Case(
        APPROVAL,
        "route",
        create_steps("auto"),
        {"auto": ("route",), "finalize": ("route", "auto"), "notify": ("finalize",)},
        "one branch: the convergence waits for it alone; what follows the convergence is created with it",
        done=("validate",),
    ),
    Case(
        APPROVAL,
        "route",
        create_steps("manager", "finance"),
        {
            "manager": ("route",),
            "finance": ("route",),
            "finalize": ("route", "manager", "finance"),
            "notify": ("finalize",),
        },
        "two branches run side by side, the convergence waits for both",
        done=("validate",),
    ),
    Case(
        APPROVAL,
        "route",
        create_steps(),
        {"finalize": ("route",), "notify": ("finalize",)},
        "no branches: the convergence lists the decision and runs right after it",
        done=("validate",),
    ),
    Case(
        UNLISTED,
        "route",
        create_steps("manager"),
        {"manager": ("route",), "finalize": ("manager",)},
        "a convergence that does not list its decision joins what was created",
    ),
    Case(
        UNLISTED,
        "route",
        create_steps(),
        {"finalize": ("route",)},
        "nothing to join: it runs after the decision, with a warning",
        warnings=("none of the dependencies of 'finalize' exists",),
    ),
)
NESTING: tuple[Case, ...] = (
    Case(
        NESTED,
        "route",
        create_steps("simple"),
        {"simple": ("route",), "finalize": ("route", "simple")},
        "the inner decision was not chosen: nothing above the convergence is undecided",
    ),
    Case(
        NESTED,
        "route",
        create_steps("senior", "compliance"),
        {"senior": ("route",), "compliance": ("route", "senior")},
        "the inner decision may still create steps to wait for: no convergence yet",
    ),
    Case(
        NESTED,
        "compliance",
        create_steps("legal", "fraud"),
        {
            "legal": ("compliance",),
            "fraud": ("compliance",),
            "finalize": ("route", "senior", "compliance", "legal", "fraud"),
        },
        "the last decision is made: the convergence waits for everything that exists",
        done=("route", "senior"),
        warnings=("'compliance' is decision number 2 of at most 3",),
    ),
    Case(
        NESTED,
        "compliance",
        create_steps(),
        {"finalize": ("route", "senior", "compliance")},
        "the last decision creates nothing: the convergence is created all the same",
        done=("route", "senior"),
        warnings=("'compliance' is decision number 2 of at most 3",),
    ),
    Case(
        TWO,
        "left",
        create_steps("a"),
        {"a": ("left",)},
        "the other decision is still open: no convergence yet",
        open=("right",),
    ),
    Case(
        TWO,
        "right",
        create_steps(),
        {"join": ("a",)},
        "both have decided, in whichever order: the convergence joins what there is",
        done=("left", "a"),
    ),
)
BATCHES: tuple[Case, ...] = (
    Case(
        CSV,
        "analyze",
        create_batches("process", 3),
        {
            "process_001": ("analyze",),
            "process_002": ("analyze",),
            "process_003": ("analyze",),
            "aggregate": ("process_001", "process_002", "process_003"),
            "report": ("aggregate",),
        },
        "the name of the batch_worker step stands for all its workers",
    ),
    Case(
        CSV,
        "analyze",
        create_batches("process", 0),
        {"process_001": ("analyze",), "aggregate": ("process_001",), "report": ("aggregate",)},
        "no batches: one placeholder with `is_no_op: true` keeps the shape of the graph",
    ),
    Case(
        BRANCH,
        "route",
        create_steps("analyze"),
        {"analyze": ("route",)},
        "the batches are not cut yet: neither the aggregation nor the convergence above it can be wired",
    ),
    Case(
        BRANCH,
        "analyze",
        create_batches("process", 2),
        {
            "process_001": ("analyze",),
            "process_002": ("analyze",),
            "aggregate": ("process_001", "process_002"),
            "finish": ("route", "aggregate"),
        },
        "the batches are cut: the aggregation and the convergence above it are created together",
        done=("route",),
    ),
    Case(
        BRANCH,
        "route",
        create_steps("quick"),
        {"quick": ("route",), "finish": ("route", "quick")},
        "the batchable branch was not taken: its aggregation has no reason to exist",
    ),
)
TABLES: Mapping[str, tuple[Case, ...]] = {
    "One decision": APPROVALS,
    "Several decisions": NESTING,
    "Batches": BATCHES,
}
CASES: tuple[Case, ...] = tuple(case for table in TABLES.values() for case in table)
