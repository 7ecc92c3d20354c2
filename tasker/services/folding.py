"""Several steps shown as one line: the instances of a batch worker, and lists of names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from tasker.contracts.step_types import PATTERNS

if TYPE_CHECKING:
    from tasker.services.reports import StepReport

FOLDED_FROM = 5
"""Minimum number of instances that are folded; fewer are shown one by one."""

NUMBERED = re.compile(r"(.+_)(\d+)")


def folded(steps: Sequence[StepReport]) -> Iterator[Sequence[StepReport]]:
    """Yield the steps in their order, many instances of a batch worker as one group, all others alone."""
    for base, group in groupby(steps, lambda step: _base(step.name) if step.type in PATTERNS else None):
        found = list(group)
        if base is not None and len(found) >= FOLDED_FROM:
            yield found
        else:
            yield from ([step] for step in found)


def folded_names(names: Sequence[str]) -> list[str]:
    """Return the names in their order, with long runs that differ only in their number as `work_001..500`."""
    found: list[str] = []
    for base, group in groupby(names, _base):
        row = list(group)
        found += [span(row)] if base is not None and len(row) >= FOLDED_FROM else row
    return found


def span(names: Sequence[str]) -> str:
    """Return `work_001..500` for names that differ only in their number."""
    return f"{names[0]}..{names[-1].removeprefix(_base(names[-1]) or '')}"


def _base(name: str) -> str | None:
    match = NUMBERED.fullmatch(name)
    return match[1] if match else None
