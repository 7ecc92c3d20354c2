"""Types of decisions."""

from __future__ import annotations

from enum import Enum
from typing import Any

from pydantic import BaseModel, Field


class DecisionType(str, Enum):  # noqa: UP042 (its text is published as `DecisionType.CREATE_STEPS`)
    """The two kinds of outcomes."""

    CREATE_STEPS = "create_steps"
    NO_BRANCHES = "no_branches"


class DecisionPointOutcome(BaseModel):
    """Decision as handlers create it; the engine validates the result of the handler.

    `dynamic_steps` are data for the steps below: a decision chooses among the steps of its template.
    """

    decision_type: DecisionType
    next_step_names: list[str] = Field(default_factory=list)
    dynamic_steps: list[dict[str, Any]] | None = None
    reason: str | None = None
    routing_context: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def create_steps(
        cls,
        step_names: list[str],
        dynamic_steps: list[dict[str, Any]] | None = None,
        routing_context: dict[str, Any] | None = None,
    ) -> DecisionPointOutcome:
        """Create these steps of the template."""
        return cls(
            decision_type=DecisionType.CREATE_STEPS,
            next_step_names=step_names,
            dynamic_steps=dynamic_steps,
            routing_context=routing_context or {},
        )

    @classmethod
    def no_branches(cls, reason: str, routing_context: dict[str, Any] | None = None) -> DecisionPointOutcome:
        """Create no steps, for this reason."""
        return cls(decision_type=DecisionType.NO_BRANCHES, reason=reason, routing_context=routing_context or {})
