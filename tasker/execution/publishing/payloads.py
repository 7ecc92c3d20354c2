"""Default payloads of events without a user-defined publisher."""

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
    """Return the result, or the failure, as `tasker.write_events` publishes it.

    Values that `result_schema` marks as `x-sensitive` are included only where the event's own schema marks them, too.
    """
    if result.failure is not None:
        return _of_failure(result, result.failure, step)
    return _of_result(as_stored(result.success.encoded) if result.success else None, step, schema)


def says_all(result: Result, step: StepPlan) -> bool:
    """Return True when the payload has all of the result or failure, so that the engine can copy it from there."""
    return not has_sensitive(result.plan) if result.failure else not marks(step.result_schema)


def _of_result(value: Any, step: StepPlan, schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    plain = dict(value or {})
    hidden = covered(step.result_schema, plain)
    shown: Mapping[str, Any] = _with_declared(plain, hidden, covered(schema, plain))
    return shown


def _with_declared(plain: Any, hidden: Any, declared: Any) -> Any:
    """Return the redacted value, with those values restored that the event's schema declares as sensitive."""
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
