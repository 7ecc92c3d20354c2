"""Plans for tests: `build_plan` from a short notation, and Hypothesis strategies for random dynamic graphs.

`scenarios()` draws a plan together with the outcome that each of its decision and batchable steps will return.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tasker.template.plan import BatchSettings, HandlerRef, Plan, RetryPolicy, StepLimit, StepPlan
from tasker.template.step_types import StepType

STANDARD, DECISION, DEFERRED = StepType.STANDARD, StepType.DECISION, StepType.DEFERRED
BATCHABLE, WORKER = StepType.BATCHABLE, StepType.BATCH_WORKER


@dataclass(frozen=True)
class Spec:
    """A step in short: its name, type and declared dependencies."""

    name: str
    type: StepType = STANDARD
    depends_on: tuple[str, ...] = ()
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    batch: BatchSettings | None = None
    publishes: tuple[Mapping[str, Any], ...] = ()
    delay: float | None = None
    not_before: Mapping[str, Any] | None = None
    limits: tuple[Mapping[str, Any], ...] = ()
    requires: tuple[str, ...] = ()
    slots: int = 1
    wait: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Scenario:
    """A plan, and for each decision and batchable step the result that it returns when it runs."""

    plan: Plan
    results: Mapping[str, Mapping[str, Any]]


def build_plan(*specs: Spec, namespace: str = "testing", name: str = "random", handler: str = "noop") -> Plan:
    """Compiles steps that are given in topological order. No check is made: that is the compiler's work."""
    given = {spec.name: spec for spec in specs}
    dynamic: set[str] = set()
    level: dict[str, int] = {}
    for spec in specs:
        if any(parent in dynamic or given[parent].type.expands for parent in spec.depends_on):
            dynamic.add(spec.name)
        level[spec.name] = 1 + max((level[parent] for parent in spec.depends_on), default=-1)
    steps = tuple(
        StepPlan(
            name=spec.name,
            type=spec.type,
            handler=HandlerRef(handler),
            ordinal=ordinal,
            level=level[spec.name],
            depends_on=spec.depends_on,
            static=spec.name not in dynamic,
            retry=spec.retry,
            batch=spec.batch,
            publishes_events=spec.publishes,
            delay_seconds=spec.delay,
            not_before=spec.not_before,
            limits=tuple(StepLimit(**limit) for limit in spec.limits),
            requires=spec.requires,
            slots=spec.slots,
            wait=spec.wait,
        )
        for ordinal, spec in enumerate(specs)
    )
    return Plan(namespace, name, "1.0.0", steps)


BESIDE_EACH_OTHER = build_plan(
    Spec("left", DECISION),
    Spec("right", DECISION),
    Spec("a", depends_on=("left",)),
    Spec("b", depends_on=("right",)),
    Spec("join", DEFERRED, ("a", "b")),
)
"""Two that decide, and what joins what they choose."""


def create_steps(*names: str) -> dict[str, Any]:
    """The result of a decision step that names these steps; none of them: no branches."""
    outcome = {"type": "create_steps", "step_names": list(names)} if names else {"type": "no_branches"}
    return {"decision_point_outcome": outcome}


def create_batches(pattern: str, count: int, size: int = 10) -> dict[str, Any]:
    """The result of a batchable step that cuts `count` batches of `size` items; 0: no batches."""
    if not count:
        return {"batch_processing_outcome": {"type": "no_batches"}}
    cursors = [
        {"batch_id": f"{i + 1:03}", "start_cursor": i * size, "end_cursor": (i + 1) * size, "batch_size": size}
        for i in range(count)
    ]
    outcome = {"type": "create_batches", "worker_template_name": pattern, "worker_count": count}
    return {"batch_processing_outcome": outcome | {"cursor_configs": cursors, "total_items": count * size}}


@st.composite
def plans(draw: st.DrawFn, max_steps: int = 12) -> Plan:
    """Any DAG that the compiler would accept: nested decisions, batches, convergences of both, in any mixture.

    The first step is static; a batchable step is followed by the batch_worker step that it cuts its work for.
    """
    specs = [Spec("s00")]
    for _ in range(draw(st.integers(1, max_steps - 1))):
        specs += draw(_next_specs(tuple(specs)))
    return build_plan(*specs)


@st.composite
def _next_specs(draw: st.DrawFn, specs: tuple[Spec, ...]) -> list[Spec]:
    name = f"s{len(specs):02}"
    kinds = [STANDARD, STANDARD, DECISION, BATCHABLE, *([DEFERRED] * 3 if _conditional(specs) else [])]
    kind = draw(st.sampled_from(kinds))
    if kind is DEFERRED:
        return [Spec(name, kind, draw(_deferred_dependencies(specs)))]
    plain = [spec.name for spec in specs if spec.type is not WORKER]
    step = Spec(name, kind, draw(_some(plain, largest=3)))
    if kind is not BATCHABLE:
        return [step]
    others = [spec.name for spec in specs if spec.type not in {WORKER, BATCHABLE}]
    extra = draw(st.just(()) | _some(others, largest=1))
    return [step, Spec(f"s{len(specs) + 1:02}", WORKER, (name, *extra))]


def _some(names: Iterable[str], largest: int) -> st.SearchStrategy[tuple[str, ...]]:
    """One to `largest` of the names, mostly late ones, so that graphs become deep."""
    late_first = list(reversed(list(names)))
    return st.lists(st.sampled_from(late_first), min_size=1, max_size=largest, unique=True).map(tuple)


@st.composite
def _deferred_dependencies(draw: st.DrawFn, specs: tuple[Spec, ...]) -> tuple[str, ...]:
    """At least one conditional step or pattern, often with the decision beside it."""
    joined = draw(_some([spec.name for spec in _conditional(specs)], largest=4))
    others = draw(st.lists(st.sampled_from([spec.name for spec in specs]), max_size=2, unique=True))
    return tuple(dict.fromkeys((*joined, *others)))


def _conditional(specs: tuple[Spec, ...]) -> list[Spec]:
    """The steps that exist only after an expansion."""
    dynamic: set[str] = set()
    expanding = {spec.name for spec in specs if spec.type.expands}
    for spec in specs:
        if any(parent in dynamic or parent in expanding for parent in spec.depends_on):
            dynamic.add(spec.name)
    return [spec for spec in specs if spec.name in dynamic]


@st.composite
def scenarios(draw: st.DrawFn, max_steps: int = 12, max_batches: int = 3) -> Scenario:
    """A plan with a chosen outcome for each step that expands; the choices are always legal ones."""
    plan = draw(plans(max_steps))
    return Scenario(plan, {s.name: draw(_result(plan, s, max_batches)) for s in plan.steps if s.type.expands})


def _result(plan: Plan, step: StepPlan, max_batches: int) -> st.SearchStrategy[dict[str, Any]]:
    children = [plan.by_name[name] for name in plan.dependents[step.name]]
    if step.type is BATCHABLE:
        pattern = next(child.name for child in children if child.type is WORKER)
        return st.integers(0, max_batches).map(lambda count: create_batches(pattern, count))
    branches = [child.name for child in children if child.type not in {DEFERRED, WORKER}]
    further = [name for name in plan.below.of(step.name) if plan.by_name[name].type not in {DEFERRED, WORKER}]
    choice = st.lists(st.sampled_from(branches * 4 + further), max_size=4, unique=True) if branches else st.just([])
    return choice.map(lambda names: create_steps(*names))
