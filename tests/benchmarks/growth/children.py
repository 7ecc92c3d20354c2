"""Steps with many child tasks: what starts them, and what counts their ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.benchmarks.growth.case import Case
from tests.support.children import FanOut, end_all
from tests.support.engine_fixture import Lab


def started(lab: Lab, children: int) -> Callable[[], Any]:
    """So many children are started, in slices of 500."""
    fan_out = FanOut(lab, children, max_parallel=children)

    def start() -> None:
        found = 0
        while slice_ := fan_out.start():
            found += len(slice_)
        assert found == children, found

    return start


def gathered(lab: Lab, children: int) -> Callable[[], Any]:
    """The ends of so many children are counted, in slices of 500, and their step ends with their outputs."""
    fan_out = FanOut(lab, children, max_parallel=children)
    while fan_out.start():
        pass
    while end_all(lab.one):
        pass

    def gather() -> None:
        while lab.one.core("child_work", {"limit": 20})["fan_outs"]:
            fan_out.gather()
        assert len(fan_out.result()["results"]) == children

    return gather


CASES = (
    Case("children_started", "child tasks", 10_000, 60.0, started),
    Case("children_gathered", "child tasks", 10_000, 20.0, gathered),
)
