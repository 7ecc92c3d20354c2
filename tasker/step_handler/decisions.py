"""Return values of decision and analyzer functions."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.types import DecisionPointOutcome


@dataclass
class Decision:
    """Return value of a decision function. Dependent steps can read its routing context."""

    outcome: DecisionPointOutcome

    @staticmethod
    def route(steps: list[str], **routing_context: Any) -> Decision:
        """Create these steps of the template. Raises `ValidationError` for an empty list: use `skip`."""
        return Decision(DecisionPointOutcome.create_steps(steps, routing_context=routing_context))

    @staticmethod
    def skip(reason: str, **routing_context: Any) -> Decision:
        """Create no steps, for the given reason."""
        return Decision(DecisionPointOutcome.no_branches(reason, routing_context))


@dataclass
class BatchConfig:
    """Return value of an analyzer function; 0 items mean no batches. Batch workers read `metadata` from its result."""

    total_items: int
    batch_size: int
    metadata: dict[str, Any] = field(default_factory=dict)
