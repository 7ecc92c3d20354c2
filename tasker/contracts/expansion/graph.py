"""Graph of a running task as the planner reads it, and the additions that the planner returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tasker.contracts.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExistingStep:
    """Existing step of a task: its name, the template step it was made from, and whether it is undecided.

    `open` is True until the step is complete or resolved: an open decision or batchable step has not decided, and a
    step in `error` may still be repaired.
    """

    name: str
    template_step: str
    open: bool


@dataclass(frozen=True, slots=True)
class NewStep:
    """Step to create. `parents` are names of steps that exist or are created together with it."""

    name: str
    template_step: str
    parents: tuple[str, ...]
    inputs: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Expansion:
    """Steps that the completion of one decision or batchable step adds to the task, in topological order."""

    steps: tuple[NewStep, ...] = ()
    warnings: tuple[str, ...] = ()


Existing = Sequence[ExistingStep]
