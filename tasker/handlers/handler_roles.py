"""Kinds of handler that fit only some types of step."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from tasker.template.step_types import Creates, StepType


class HandlerRole(Enum):
    """Role that a handler's declaration states: its decorator, a description, and a predicate for step types."""

    STEP = ("@step_handler", "returns a plain result", lambda kind: not kind.expands)
    DECISION = ("@decision_handler", "decides which branches run", lambda kind: kind.creates is Creates.BRANCHES)
    ANALYZER = ("@batch_analyzer", "cuts work into batches", lambda kind: kind.creates is Creates.BATCHES)
    WORKER = ("@batch_worker", "does one batch", lambda kind: kind.is_pattern)
    AGGREGATOR = ("@batch_aggregator", "puts batches together", lambda kind: not kind.expands and not kind.is_pattern)

    def __init__(self, decorator: str, does: str, fits: Callable[[StepType], bool]) -> None:
        self.decorator, self.does, self.fits = decorator, does, fits

    def problem(self, step: str, kind: StepType) -> tuple[str, str] | None:
        """Return the problem with such a handler on a step of this type and its fix, or None if it fits."""
        if self.fits(kind):
            return None
        message = f"{self.does} ({self.decorator}), and `{step}` is a step of type `{kind}`"
        fitting_role = next((role for role in _SPECIAL if role.fits(kind)), HandlerRole.STEP)
        change = _RETURNS.get(fitting_role, f"declare the function with {fitting_role.decorator}")
        types = [str(step_type) for step_type in StepType if self.fits(step_type)]
        if self is HandlerRole.STEP:
            return message, change
        return message, f"write `type: {types[0]}` for `{step}` in the template, or {change}"


_SPECIAL = (HandlerRole.DECISION, HandlerRole.ANALYZER, HandlerRole.WORKER)
_RETURNS = {
    HandlerRole.DECISION: "declare the function with @decision_handler and return Decision.route([...]) or "
    "Decision.skip(reason)",
    HandlerRole.ANALYZER: "declare the function with @batch_analyzer and return a BatchConfig",
}
