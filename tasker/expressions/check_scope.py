"""Surroundings of an expression that is checked."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import field

from tasker.dataclasses import dataclass
from tasker.expressions.types import Type


@dataclass(frozen=True, slots=True)
class CheckScope:
    """Names in scope of an expression, and results of the steps above, which it reads as `steps.NAME`."""

    names: Mapping[str, Type]
    steps: Mapping[str, Type] = field(default_factory=dict)
    uncertain: Container[str] = frozenset()
    """Steps above that may not exist: branches that a decision may not take."""
    known: Container[str] = frozenset()
    """All steps of the template."""
    step: str = ""
    """Name of the step, for messages."""
    strict: bool = False
    """Whether a value that no schema describes is a problem where its fields are read."""
