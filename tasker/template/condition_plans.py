"""Compiled rules and lists of steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule of a decision without a handler: the first one whose condition is true decides."""

    then: tuple[str, ...]
    """Steps to create."""
    when: str | None = None
    """Expression; None: the rule always applies."""
    because: str | None = None
    """Text of the reason, which may contain `${...}`."""


@dataclass(frozen=True, slots=True)
class ForEach:
    """List whose items a `batch_worker` step processes, one call of its handler for each."""

    items: str
    """Expression of the list."""
    name: str = "item"
    """Name of the item in the expressions of `inputs`."""
    batch_size: int = 1
    """Items of one instance of the step."""
    on_error: str = "fail"
    """`fail`, or `collect`: the failure of an item becomes its result."""
    result_schema: Mapping[str, Any] | None = None
    """Schema of the handler's result for one item; that of the step describes the list of all."""
