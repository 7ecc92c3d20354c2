"""Helpers for a handler that decides which branches of the template come to life."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.contracts.expansion.outcome_forms import DECISION_KEY
from tasker.types import DecisionPointOutcome, DecisionType, StepHandlerResult


class DecisionMixin:
    """Adds decision results to a step handler.

    `routing_context` (also spelled `result_data`) is merged into the result, so that the steps below read
    `get_dependency_field("decide", "route_type")`, and is kept whole under `routing_context`.
    """

    @property
    def decision_capabilities(self) -> list[str]:
        """What this mixin adds."""
        return ["decision_point", "dynamic_workflow", "step_creation"]

    def decision_success(
        self,
        steps: str | list[str] | DecisionPointOutcome,
        routing_context: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        *,
        result_data: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Create these steps: one name, several, or a ready outcome. No names at all means no branches."""
        return decision_result(to_outcome(steps), _merged(routing_context, result_data), metadata)

    def decision_success_with_outcome(
        self, outcome: DecisionPointOutcome, metadata: dict[str, Any] | None = None
    ) -> StepHandlerResult:
        """Report a ready outcome."""
        return decision_result(outcome, None, metadata)

    def decision_with_custom_outcome(
        self,
        outcome: DecisionPointOutcome | dict[str, Any],
        result_data: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Report an outcome in any accepted form, with data for the result."""
        return decision_result(self.validate_decision_outcome(outcome), result_data, metadata)

    def decision_no_branches(
        self,
        outcome: DecisionPointOutcome | dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        *,
        result_data: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Create nothing. `outcome` is a `no_branches` outcome, or data for the result."""
        if isinstance(outcome, DecisionPointOutcome):
            return decision_result(outcome, result_data, metadata)
        return decision_result(DecisionPointOutcome.no_branches(), _merged(outcome, result_data), metadata)

    def route_to_steps(
        self,
        step_names: list[str],
        routing_context: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """The same as `decision_success`."""
        return self.decision_success(step_names, routing_context, metadata)

    def skip_branches(
        self,
        reason: str,
        routing_context: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """Create nothing and say why; the result carries `reason`."""
        return decision_result(DecisionPointOutcome.no_branches(reason), routing_context, metadata)

    def decision_failure(
        self,
        message: str,
        error_type: str = "decision_error",
        retryable: bool = False,
        metadata: dict[str, Any] | None = None,
    ) -> StepHandlerResult:
        """No decision could be made."""
        return StepHandlerResult.failure(message, error_type, retryable, metadata)

    @staticmethod
    def validate_decision_outcome(outcome: DecisionPointOutcome | dict[str, Any]) -> DecisionPointOutcome:
        """The outcome, checked; raises `ValidationError` when its structure is wrong."""
        return DecisionPointOutcome.parse(outcome)


def to_outcome(steps: str | list[str] | DecisionPointOutcome) -> DecisionPointOutcome:
    """The outcome for a name, several names, or an outcome."""
    if isinstance(steps, DecisionPointOutcome):
        return steps
    if not steps:
        return DecisionPointOutcome.no_branches("no step was named")
    return DecisionPointOutcome.create_steps(steps)


def decision_result(
    outcome: DecisionPointOutcome, data: Any = None, metadata: dict[str, Any] | None = None
) -> StepHandlerResult:
    """A success that carries the outcome where the engine looks for it; `data` never replaces it."""
    context = {**outcome.routing_context, **_plain(data)}
    result: dict[str, Any] = dict(context)
    if outcome.decision_type is DecisionType.NO_BRANCHES and outcome.reason:
        result.setdefault("reason", outcome.reason)
    if context:
        result["routing_context"] = context
    return StepHandlerResult.success({**result, DECISION_KEY: outcome.to_dict()}, metadata)


def _plain(data: Any) -> Mapping[str, Any]:
    """Routing data as a mapping; an object such as an API response says itself what it is."""
    to_dict = getattr(data, "to_dict", None)
    plain: Mapping[str, Any] = to_dict() if callable(to_dict) else data or {}
    return plain


def _merged(*parts: Any) -> dict[str, Any]:
    return {key: value for part in parts for key, value in _plain(part).items()}
