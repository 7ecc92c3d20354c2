"""Views of steps and of what operators did to them."""

from __future__ import annotations

from tasker.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetriedSteps:
    """Names of the steps that run again, and of lost steps that were not reset because they may run only once (rule
    11)."""

    reset: tuple[str, ...]
    left: tuple[str, ...]
