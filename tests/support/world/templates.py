"""Random templates for the world: a random plan with what its decisions will choose, policies and a namespace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tasker.template.plan import RetryPolicy
from tests.support.model.parts import Ending
from tests.support.random_plans import (
    BATCHABLE,
    DECISION,
    DEFERRED,
    WORKER,
    Scenario,
    Spec,
    build_plan,
    create_batches,
    create_steps,
    scenarios,
)

NAMESPACES = ("alpha", "beta")
TIMES: list[dict[str, float]] = [
    {}, {}, {}, {"delay": 2}, {"delay": 20}, {"expires_in": 5}, {"delay": 2, "expires_in": 5}
]  # fmt: skip
"""When tasks begin and expire, in seconds."""

PRIORITIES = st.lists(st.sampled_from([0, 0, 0, 3]), min_size=1, max_size=3)
"""Of tasks that are submitted together."""

EVENTS = st.lists(
    st.builds(
        lambda name, condition: {"name": name, "condition": condition, "delivery_mode": "durable"},
        st.sampled_from(["moved", "ended"]),
        st.sampled_from(["success", "failure", "always"]),
    ),
    max_size=2,
)
POLICIES = st.builds(
    RetryPolicy,
    retryable=st.sampled_from([True, True, True, False]),
    max_attempts=st.integers(0, 4),
    backoff=st.sampled_from(["exponential", "fixed", "none"]),
    backoff_base_ms=st.sampled_from([100, 1000, 20_000]),
)

FAILURES = st.builds(
    Ending,
    failed=st.just(True),
    retryable=st.sampled_from([True, True, False]),
    retry_after=st.sampled_from([None, None, 0.0, 2.5]),
)


class Template(Scenario):
    """A scenario that the reader of a failure can take in."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def __repr__(self) -> str:
        steps = (
            f"{s.name}:{s.type}({','.join(s.depends_on)}) {s.retry.max_attempts if s.retry.retryable else 'once'}"
            f" {s.retry.backoff} {s.retry.backoff_base_ms} {s.on_worker_lost} after {s.delay_seconds}"
            for s in self.plan.steps
        )
        return f"{self.plan.namespace}/{self.plan.name}: {'; '.join(steps)} -> {dict(self.results)}"


@st.composite
def rivals(draw: st.DrawFn) -> Scenario:
    """Decisions and batches side by side, the branches of one of them deciding again, and convergences of them all."""
    specs, results, ends = [Spec("root")], {}, []
    for n, kind in enumerate(draw(st.lists(st.sampled_from([DECISION, DECISION, BATCHABLE]), min_size=2, max_size=3))):
        name = f"{'d' if kind is DECISION else 'b'}{n}"
        specs.append(Spec(name, kind, ("root",)))
        if kind is BATCHABLE:
            specs.append(Spec(f"{name}w", WORKER, (name,)))
            results[name] = create_batches(f"{name}w", draw(st.integers(0, 2)))
            ends.append(f"{name}w")
            continue
        branches = [f"{name}x", f"{name}y"]
        specs += [
            Spec(f"{name}x", DECISION, (name,)),
            Spec(f"{name}z", depends_on=(f"{name}x",)),
            Spec(f"{name}y", depends_on=(name,)),
        ]
        results[name] = create_steps(*draw(st.lists(st.sampled_from(branches), unique=True)))
        results[f"{name}x"] = create_steps(*draw(st.sampled_from([(), (f"{name}z",)])))
        ends += [f"{name}z", f"{name}y"]
    joined = draw(st.lists(st.sampled_from(ends), min_size=1, unique=True))
    specs += [
        Spec("join", DEFERRED, tuple(joined)),
        Spec("all", DEFERRED, tuple(ends)),
        Spec("after", depends_on=("join",)),
    ]
    return Scenario(build_plan(*specs), results)


@st.composite
def templates(draw: st.DrawFn) -> Template:
    """A random scenario in one of the namespaces, with random policies."""
    scenario = draw(st.one_of(scenarios(max_steps=9, max_batches=3), rivals()))
    policies = draw(st.lists(POLICIES, min_size=1, max_size=3))
    events = draw(st.lists(EVENTS, min_size=1, max_size=3))
    lost = draw(st.sampled_from([("retry",), ("retry", "retry", "fail")]))
    delays = draw(st.sampled_from([(None,), (None,), (None, 2.0), (None, None, 30.0, 2.0), (1.0,)]))
    steps = tuple(
        replace(
            step,
            retry=policies[n % len(policies)],
            on_worker_lost=lost[n % len(lost)],
            delay_seconds=delays[n % len(delays)],
            publishes_events=tuple(events[n % len(events)]),
        )
        for n, step in enumerate(scenario.plan.steps)
    )
    names = {"namespace": draw(st.sampled_from(NAMESPACES)), "name": draw(st.sampled_from(["red", "green"]))}
    return Template(replace(scenario.plan, steps=steps, **names), scenario.results)
