"""Helpers for a handler that decides which branches of the template are created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.contracts.expansion.outcome_forms import DECISION_KEY
from tasker.types import DecisionPointOutcome, DecisionType, StepHandlerResult


class DecisionMixin:
    """Adds decision results to a step handler.

    `routing_context` (alias `result_data`) is merged into the result, so that dependent steps can read
    `get_dependency_field("decide", "route_type")`; the whole mapping is also stored under `routing_context`.
    """

    @property
    def decision_capabilities(self) -> list[str]:
        """Capabilities that this mixin adds."""
        return ["decision_point", "dynamic_workflow", "step_creation"]

    def decision_success(
        self,
        steps: str | list[str] | DecisionPointOutcome,
        routing_context: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        *,
        result_data: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Create these steps: one name, several, or a complete outcome. An empty list creates no branches."""
        return decision_result(to_outcome(steps), _merged(routing_context, result_data), metadata)

    def decision_success_with_outcome(
        self, outcome: DecisionPointOutcome, metadata: dict[str, Any] | None = None
    ) -> StepHandlerResult:
        """Return the result for a complete outcome."""
        return decision_result(outcome, None, metadata)

    def decision_with_custom_outcome(
        self,
        outcome: DecisionPointOutcome | dict[str, Any],
        result_data: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Return the result for an outcome in any accepted form, with additional data."""
        return decision_result(self.validate_decision_outcome(outcome), result_data, metadata)

    def decision_no_branches(
        self,
        outcome: DecisionPointOutcome | dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        *,
        result_data: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Create no steps. `outcome` is a `no_branches` outcome, or data for the result."""
        if isinstance(outcome, DecisionPointOutcome):
            return decision_result(outcome, result_data, metadata)
        return decision_result(DecisionPointOutcome.no_branches(), _merged(outcome, result_data), metadata)

    def route_to_steps(
        self,
        step_names: list[str],
        routing_context: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Create these steps; see `decision_success`."""
        return self.decision_success(step_names, routing_context, metadata)

    def skip_branches(
        self,
        reason: str,
        routing_context: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Create no steps; the result contains `reason`."""
        return decision_result(DecisionPointOutcome.no_branches(reason), routing_context, metadata)

    def decision_failure(
        self,
        message: str,
        error_type: str = "decision_error",
        retryable: bool = False,
        metadata: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Return a failure to decide."""
        return StepHandlerResult.failure(message, error_type, retryable, metadata)

    @staticmethod
    def validate_decision_outcome(outcome: DecisionPointOutcome | dict[str, Any]) -> DecisionPointOutcome:
        """Return the validated outcome. Raises `ValidationError` if its structure is invalid."""
        return DecisionPointOutcome.parse(outcome)


def to_outcome(steps: str | list[str] | DecisionPointOutcome) -> DecisionPointOutcome:
    """Return the outcome for a name, several names, or an outcome."""
    if isinstance(steps, DecisionPointOutcome):
        return steps
    if not steps:
        return DecisionPointOutcome.no_branches("no step was named")
    return DecisionPointOutcome.create_steps(steps)


def decision_result(
    outcome: DecisionPointOutcome, data: Any = None, metadata: dict[str, Any] | None = None
) -> StepHandlerResult:
    """Return a success with the outcome under the engine's key; `data` never replaces it."""
    context = {**outcome.routing_context, **_plain(data)}
    result: dict[str, Any] = dict(context)
    if outcome.decision_type is DecisionType.NO_BRANCHES and outcome.reason:
        result.setdefault("reason", outcome.reason)
    if context:
        result["routing_context"] = context
    return StepHandlerResult.success({**result, DECISION_KEY: outcome.to_dict()}, metadata)


def _plain(data: Any) -> Mapping[str, Any]:
    """Return routing data as a mapping; an object such as an API response is converted with its `to_dict`."""
    to_dict = getattr(data, "to_dict", None)
    plain: Mapping[str, Any] = to_dict() if callable(to_dict) else data or {}
    return plain


def _merged(*parts: Any) -> dict[str, Any]:
    return {key: value for part in parts for key, value in _plain(part).items()}
