"""Reading the outcome of a decision or batchable step, and the error of one that cannot be followed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any

from tasker.errors import TaskerError


class OutcomeProblem(StrEnum):
    """What is wrong with an outcome, for programs."""

    MISSING = "missing_outcome"
    MALFORMED = "malformed_outcome"
    UNKNOWN_STEP = "unknown_step"
    NOT_CREATABLE = "not_creatable"
    TOO_DEEP = "decision_too_deep"
    TOO_MANY_STEPS = "too_many_steps"
    DISABLED = "disabled"


class OutcomeError(TaskerError):
    """A decision or batchable step returned an outcome that cannot be followed.

    It is that step's permanent failure, and nothing is created.
    """

    retryable = False
    error_type = "invalid_outcome"

    def __init__(self, problem: OutcomeProblem, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, error_code=problem.value, hint=hint)
        self.problem = problem


def malformed(key: str, message: str, hint: str | None = None) -> OutcomeError:
    """The error for an outcome that does not have the form it must have; `message` goes on after the key."""
    return OutcomeError(OutcomeProblem.MALFORMED, f"{key} {message}", hint=hint)


def outcome_of(result: Any, key: str, example: str) -> Mapping[str, Any]:
    """The outcome that a result holds under `key`. Raises `OutcomeError` when there is none."""
    if not isinstance(result, Mapping) or key not in result:
        found = f"an object with {_listed(result)}" if isinstance(result, Mapping) else describe(result)
        message = f"the result has no '{key}'; found {found}"
        raise OutcomeError(OutcomeProblem.MISSING, message, hint=f"return {example}")
    outcome = result[key]
    if not isinstance(outcome, Mapping):
        raise malformed(key, f"must be an object, found {describe(outcome)}", f"return {example}")
    return outcome


def refuse_unknown_keys(key: str, outcome: Mapping[str, Any], known: Collection[str]) -> None:
    """Raises `OutcomeError` for a key that this form of outcome does not have, with the nearest that it has."""
    for name in outcome:
        if name not in known:
            raise malformed(key, f"has an unknown key '{name}'", did_you_mean(name, known))


def did_you_mean(name: str, known: Collection[str]) -> str:
    """The nearest known name, or all of them."""
    from difflib import get_close_matches  # for mistakes alone

    near = get_close_matches(name, known, n=1)
    return f"did you mean '{near[0]}'?" if near else f"expected one of: {', '.join(known)}"


def describe(value: Any) -> str:
    """A value as a reader of JSON would name it, cut to a line."""
    names = {type(None): "null", bool: "a boolean", dict: "an object", list: "a list", str: "text"}
    text = repr(value)
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    return "null" if value is None else f"{names.get(type(value), type(value).__name__)} {shown}"


def is_count(value: Any) -> bool:
    """True for a whole number from 0; a boolean is none."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _listed(result: Mapping[str, Any]) -> str:
    return f"the keys {', '.join(map(repr, result))}" if result else "no keys"
