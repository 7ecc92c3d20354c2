"""Helpers for a handler that decides which branches of the template run."""

from __future__ import annotations

from typing import Any

from tasker.handlers.outcome_forms import DECISION_KEY
from tasker_core.answering import Answering
from tasker_core.types import DecisionPointOutcome, StepHandlerResult

__all__ = ["DecisionMixin"]


class DecisionMixin(Answering):
    """Mixin with decision results; the steps below read `routing_context` under that key."""

    @property
    def decision_capabilities(self) -> list[str]:
        """Capabilities that this mixin adds."""
        return ["decision", "routing"]

    def decision_success(
        self,
        steps: list[str],
        routing_context: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Return a result that creates these steps."""
        outcome = DecisionPointOutcome.create_steps(steps, routing_context=routing_context)
        return self.decision_success_with_outcome(outcome, metadata)

    def decision_success_with_outcome(
        self, outcome: DecisionPointOutcome, metadata: dict[str, Any] | None = None
    ) -> StepHandlerResult:
        """Return the result of an outcome that creates steps."""
        decided: dict[str, Any] = {"type": outcome.decision_type.value, "step_names": outcome.next_step_names}
        dynamic = {"dynamic_steps": outcome.dynamic_steps} if outcome.dynamic_steps else {}
        return self._decided(outcome, decided, dynamic, metadata)

    def decision_no_branches(
        self, outcome: DecisionPointOutcome, metadata: dict[str, Any] | None = None
    ) -> StepHandlerResult:
        """Return the result of an outcome that creates none."""
        return self._decided(outcome, {"type": outcome.decision_type.value}, {"reason": outcome.reason}, metadata)

    def route_to_steps(
        self,
        step_names: list[str],
        routing_context: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Return a result that creates these steps, like `decision_success`."""
        return self.decision_success(step_names, routing_context, metadata)

    def skip_branches(
        self,
        reason: str,
        routing_context: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Return a result that creates no steps, for this reason."""
        return self.decision_no_branches(DecisionPointOutcome.no_branches(reason, routing_context), metadata)

    def decision_failure(
        self,
        message: str,
        error_type: str = "decision_error",
        retryable: bool = False,
        metadata: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Return a failure to decide."""
        return self.failure(message, error_type, retryable, self._with_decider(metadata))

    def _decided(
        self,
        outcome: DecisionPointOutcome,
        decided: dict[str, Any],
        data: dict[str, Any],
        metadata: dict[str, Any] | None,
    ) -> StepHandlerResult:
        context = {"routing_context": outcome.routing_context} if outcome.routing_context else {}
        return self.success({DECISION_KEY: decided, **data, **context}, self._with_decider(metadata))

    def _with_decider(self, metadata: dict[str, Any] | None) -> dict[str, Any]:
        return {**(metadata or {}), "decision_handler": self.name, "decision_version": self.version}
