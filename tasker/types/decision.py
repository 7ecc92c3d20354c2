"""Outcome of a decision step: the steps of the template that it creates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator

from tasker.contracts.expansion.outcome_forms import DECISION_KEY, PUBLISHED, WIRE
from tasker.contracts.expansion.outcome_forms import DecisionType as DecisionType
from tasker.errors import ValidationError
from tasker.types.model import Model


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
