"""What an event says of its step when no publisher of the author's own says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.contracts.defaults import REDACTED
from tasker.contracts.execution import Failure
from tasker.contracts.plan import StepPlan
from tasker.lifecycle.sensitive import covered, has_sensitive, marks
from tasker.lifecycle.storable import as_stored
from tasker.services.engine.exchange import Result


def own_payload(result: Result, step: StepPlan, schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The result, or what failed, of which `tasker.write_events` publishes the same.

    What `result_schema` marks as `x-sensitive` is in it only where the event's own schema marks it, too.
    """
    if result.failure is not None:
        return _of_failure(result, result.failure, step)
    return _of_result(as_stored(result.success.encoded) if result.success else None, step, schema)


def says_all(result: Result, step: StepPlan) -> bool:
    """True when the payload holds all of the result, or of what failed, so that the engine can take it from there."""
    return not has_sensitive(result.plan) if result.failure else not marks(step.result_schema)


def _of_result(value: Any, step: StepPlan, schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    plain = dict(value or {})
    hidden = covered(step.result_schema, plain)
    shown: Mapping[str, Any] = _with_declared(plain, hidden, covered(schema, plain))
    return shown


def _with_declared(plain: Any, hidden: Any, declared: Any) -> Any:
    """What is hidden, and shown where it is declared to be sensitive and published."""
    if declared == REDACTED or hidden == plain:
        return plain
    if isinstance(plain, Mapping) and isinstance(hidden, Mapping) and isinstance(declared, Mapping):
        return {key: _with_declared(each, hidden[key], declared[key]) for key, each in plain.items()}
    return hidden


def _of_failure(result: Result, failure: Failure, step: StepPlan) -> dict[str, Any]:
    return {
        "message": REDACTED if has_sensitive(result.plan) else failure.message,
        "error_type": failure.error_type,
        "error_code": failure.error_code,
        "retryable": failure.retryable,
        "attempt": result.claim.attempt,
        "max_attempts": max(1, step.retry.max_attempts),
    }
