"""Common parts of parsing the outcomes of decision and batchable steps, and their error."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any

from tasker.errors import TaskerError


class OutcomeProblem(StrEnum):
    """Machine-readable codes of problems with an outcome."""

    MISSING = "missing_outcome"
    MALFORMED = "malformed_outcome"
    UNKNOWN_STEP = "unknown_step"
    NOT_CREATABLE = "not_creatable"
    TOO_DEEP = "decision_too_deep"
    TOO_MANY_STEPS = "too_many_steps"
    DISABLED = "disabled"


class OutcomeError(TaskerError):
    """Unusable outcome of a decision or batchable step.

    It is a permanent failure of the step, and no steps are created.
    """

    retryable = False
    error_type = "invalid_outcome"

    def __init__(self, problem: OutcomeProblem, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, error_code=problem.value, hint=hint)
        self.problem = problem


def malformed(key: str, message: str, hint: str | None = None) -> OutcomeError:
    """Return the error for a malformed outcome; `message` continues the sentence that begins with the key."""
    return OutcomeError(OutcomeProblem.MALFORMED, f"{key} {message}", hint=hint)


def outcome_of(result: Any, key: str, example: str) -> Mapping[str, Any]:
    """Return the outcome under `key` in a result. Raises `OutcomeError` if there is none."""
    if not isinstance(result, Mapping) or key not in result:
        actual = f"an object with {_listed(result)}" if isinstance(result, Mapping) else describe(result)
        message = f"the result has no '{key}'; found {actual}"
        raise OutcomeError(OutcomeProblem.MISSING, message, hint=f"return {example}")
    outcome = result[key]
    if not isinstance(outcome, Mapping):
        raise malformed(key, f"must be an object, found {describe(outcome)}", f"return {example}")
    return outcome


def refuse_unknown_keys(key: str, outcome: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise `OutcomeError` for a key that this form does not have, suggesting the nearest known one."""
    for name in outcome:
        if name not in known:
            raise malformed(key, f"has an unknown key '{name}'", did_you_mean(name, known))


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return a hint with the nearest known name, or with all of them."""
    from difflib import get_close_matches  # lazy import, needed only for errors

    near = get_close_matches(name, known, n=1)
    return f"did you mean '{near[0]}'?" if near else f"expected one of: {', '.join(known)}"


def describe(value: Any) -> str:
    """Describe a value in terms of JSON, shortened to one line."""
    names = {type(None): "null", bool: "a boolean", dict: "an object", list: "a list", str: "text"}
    text = repr(value)
    shortened = text if len(text) <= 80 else f"{text[:77]}..."
    return "null" if value is None else f"{names.get(type(value), type(value).__name__)} {shortened}"


def is_count(value: Any) -> bool:
    """Return whether the value is a non-negative integer; a boolean is not."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _listed(result: Mapping[str, Any]) -> str:
    return f"the keys {', '.join(map(repr, result))}" if result else "no keys"
