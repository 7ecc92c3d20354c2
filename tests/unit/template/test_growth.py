"""Compiling takes work for each step and each dependency: counted calls and bytes, not seconds."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from tasker.template import compile_text
from tasker.template.plan import Plan

SMALL = 150
FACTOR = 4
HEAD = 'name: large\nnamespace_name: growth\nversion: "1.0.0"\nsteps:\n'


def step(name: str, *parents: str, kind: str = "standard") -> str:
    return f"  - {{name: {name}, type: {kind}, handler: growth.step, dependencies: [{', '.join(parents)}]}}\n"


def chain(length: int) -> str:
    return HEAD + "".join(step(f"s{i}", *([f"s{i - 1}"] if i else [])) for i in range(length))


def fan(width: int) -> str:
    names = [f"s{i}" for i in range(width)]
    return HEAD + step("first") + "".join(step(name, "first") for name in names) + step("last", *names)


def two_chains(length: int) -> str:
    """Side by side: their steps alternate in the order."""
    return HEAD + "".join(step(f"s{i}", *([f"s{i - 2}"] if i > 1 else [])) for i in range(length))


def overridden(length: int) -> str:
    entries = "".join(f"      - {{name: s{i}, timeout_seconds: 5}}\n" for i in range(length))
    return chain(length) + "environments:\n  production:\n    steps:\n" + entries


def decisions(length: int) -> str:
    """A decision below each decision, and a convergence at the end."""
    names = [f"s{i}" for i in range(length)]
    steps = (step(name, *names[max(0, i - 1) : i], kind="decision") for i, name in enumerate(names))
    branch = step("branch", names[-1])
    return HEAD + "".join(steps) + branch + step("end", "branch", names[-1], kind="deferred_convergence")


def branches(width: int) -> str:
    """One decision above all of them, and a convergence."""
    names = [f"s{i}" for i in range(width)]
    steps = "".join(step(name, "first") for name in names)
    return HEAD + step("first", kind="decision") + steps + step("end", "first", *names, kind="deferred_convergence")


def below_a_renamed_step(width: int) -> str:
    """All of them still name it as it was called."""
    return HEAD + step("first") + "".join(step(f"s{i}", "fist") for i in range(width))


def below_a_cycle(length: int) -> str:
    """None of them can be ordered, and the cycle is reported."""
    return (
        HEAD
        + step("a", "b")
        + step("b", "a")
        + "".join(step(f"s{i}", f"s{i - 1}" if i else "b") for i in range(length))
    )


def calls(work: Callable[[], Any]) -> int:
    """How many functions the work calls, those of C included."""
    count = 0

    def called(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def lines(work: Callable[[], Any]) -> int:
    """How many lines of Python it executes, a line once more each time round a loop: those that call nothing, too."""
    count = 0

    def traced(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return traced

    sys.settrace(traced)
    try:
        work()
    finally:
        sys.settrace(None)
    return count


def peak(work: Callable[[], Any]) -> int:
    """How many bytes it needs at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def stored(text: str) -> str:
    """As registering stores it."""
    (plan,) = compile_text(text).plans
    return Plan.from_json(plan.to_json()).hash


@pytest.mark.parametrize("shape", [chain, fan, two_chains, overridden, decisions, branches])
def test_a_template_is_compiled_and_stored_with_work_for_each_step(shape: Callable[[int], str]) -> None:
    small, large = shape(SMALL), shape(SMALL * FACTOR)
    assert stored(small) != stored(large)

    for measure, work in ((calls, stored), (peak, stored), (lines, compile_text)):
        least, most = measure(partial(work, small)), measure(partial(work, large))
        assert most < least * FACTOR * 1.3, (measure.__name__, least, most)


def test_what_hangs_below_a_cycle_is_not_searched_for_another_each_time() -> None:
    small, large = below_a_cycle(SMALL), below_a_cycle(SMALL * FACTOR)

    assert [found.code for found in compile_text(small).errors] == ["T041"]
    assert calls(lambda: compile_text(large)) < calls(lambda: compile_text(small)) * FACTOR * 1.3


def test_what_hangs_below_a_renamed_step_is_told_what_to_write_by_one_search() -> None:
    small, large = below_a_renamed_step(SMALL), below_a_renamed_step(SMALL * FACTOR)

    assert {found.hint for found in compile_text(large).errors} == {"did you mean `first`?"}
    assert calls(lambda: compile_text(large)) < calls(lambda: compile_text(small)) * FACTOR * 1.3


def test_a_chain_of_thousands_of_steps_is_compiled() -> None:
    (plan,) = compile_text(chain(2 * sys.getrecursionlimit())).plans

    assert plan.steps[-1].level == len(plan.steps) - 1
    assert len(plan.above.of(plan.steps[-1].name)) == len(plan.steps) - 1
