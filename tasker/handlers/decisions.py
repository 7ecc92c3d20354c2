"""Decisions of handlers: which steps run next, in the forms that the engine reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar

from pydantic import Field, model_validator

from tasker.dataclasses import dataclass
from tasker.errors import ValidationError
from tasker.handlers.handler_roles import HandlerRole
from tasker.handlers.outcome_forms import DECISION_KEY, PUBLISHED, WIRE
from tasker.handlers.outcome_forms import DecisionType as DecisionType
from tasker.handlers.results import Model, StepHandlerResult
from tasker.handlers.step_handler import StepHandler


class DecisionPointOutcome(Model):
    """A decision. `to_dict` returns the engine's form; `parse` reads that form and this class's own.

    Raises `ValidationError` (permanent) for `dynamic_steps`: a decision chooses among the steps of its template and
    cannot add others.
    """

    decision_type: DecisionType
    next_step_names: list[str] = Field(default_factory=list)
    dynamic_steps: list[dict[str, Any]] | None = None
    reason: str | None = None
    routing_context: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> DecisionPointOutcome:
        if self.dynamic_steps:
            raise ValidationError(
                "dynamic_steps is not supported: a decision chooses among the steps of its template",
                hint="declare the steps in the template and name them in step_names",
            )
        if self.decision_type is DecisionType.CREATE_STEPS and not self.next_step_names:
            raise ValidationError(
                "a create_steps outcome names no step",
                hint="name at least one step, or use DecisionPointOutcome.no_branches(reason)",
            )
        if self.decision_type is DecisionType.NO_BRANCHES and self.next_step_names:
            raise ValidationError(f"a no_branches outcome names steps: {self.next_step_names}")
        return self

    @classmethod
    def create_steps(
        cls,
        step_names: list[str] | str,
        dynamic_steps: list[dict[str, Any]] | None = None,
        routing_context: dict[str, Any] | None = None,
    ) -> DecisionPointOutcome:
        """Create one or several steps of the template. Repeated names count once."""
        names = [step_names] if isinstance(step_names, str) else step_names
        return cls(
            decision_type=DecisionType.CREATE_STEPS,
            next_step_names=list(dict.fromkeys(names)),
            dynamic_steps=dynamic_steps,
            routing_context=routing_context or {},
        )

    @classmethod
    def no_branches(
        cls, reason: str | None = None, routing_context: dict[str, Any] | None = None
    ) -> DecisionPointOutcome:
        """Create no steps; dependent deferred steps still run."""
        return cls(decision_type=DecisionType.NO_BRANCHES, reason=reason, routing_context=routing_context or {})

    @classmethod
    def parse(cls, value: Any) -> DecisionPointOutcome:
        """Return the outcome from an outcome, its wire form or its published form.

        Raises `ValidationError` with the invalid value.
        """
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise ValidationError(f"a decision outcome must be a mapping, found {type(value).__name__}: {value!r:.100}")
        kind = value.get(WIRE.type_key, value.get(PUBLISHED.type_key))
        if kind not in tuple(DecisionType):
            raise ValidationError(
                f"unknown decision outcome type {kind!r}", hint='expected "create_steps" or "no_branches"'
            )
        context = value.get("routing_context")
        if DecisionType(kind) is DecisionType.NO_BRANCHES:
            return cls.no_branches(value.get("reason"), context)
        names = value.get(WIRE.names_key, value.get(PUBLISHED.names_key))
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            raise ValidationError(f"step_names must be a list of step names, found {names!r:.100}")
        return cls.create_steps(list(names), value.get("dynamic_steps"), context)

    @classmethod
    def from_step_result(cls, result: Mapping[str, Any] | None) -> DecisionPointOutcome | None:
        """Return the outcome in a step's result; None without the key. Raises `ValidationError` if it is malformed."""
        return cls.parse(result[DECISION_KEY]) if result and DECISION_KEY in result else None

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome in wire form."""
        names = {WIRE.names_key: list(self.next_step_names)} if self.next_step_names else {}
        return {WIRE.type_key: self.decision_type.value, **names}

    def to_value(self) -> dict[str, Any]:
        """Return the outcome in wire form; see `to_dict`."""
        return self.to_dict()


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


class DecisionHandler(DecisionMixin, StepHandler):
    """`StepHandler` with `DecisionMixin`."""

    handler_role: ClassVar[HandlerRole] = HandlerRole.DECISION

    @property
    def capabilities(self) -> list[str]:
        """Capabilities of a handler, plus those of decisions."""
        return [*super().capabilities, *self.decision_capabilities]
