"""The graph of a running task, as the planner sees it, and what the planner wants added to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tasker.contracts.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExistingStep:
    """A step that the task has: its name, the template step it was made from, and whether it is still undecided.

    `open` is True until the step is complete or resolved: an open decision or batchable step has not decided, and one
    in `error` may still be repaired.
    """

    name: str
    template_step: str
    open: bool


@dataclass(frozen=True, slots=True)
class NewStep:
    """A step to create. `parents` are names of steps that exist or are created with it."""

    name: str
    template_step: str
    parents: tuple[str, ...]
    inputs: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Expansion:
    """What completing one decision or batchable step adds to the task, in topological order."""

    steps: tuple[NewStep, ...] = ()
    warnings: tuple[str, ...] = ()


Existing = Sequence[ExistingStep]
