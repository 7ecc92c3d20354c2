"""Identity of submissions: decides whether two submissions are the same task."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tasker.errors import TaskerError
from tasker.json_values import encode

VERSION = "v1"
"""Version of the computation, raised when it changes, so that old and new hashes never collide."""

STRATEGIES = ("strict", "caller_provided", "always_unique")

_EXACT = 2**53


class IdentityError(TaskerError):
    """Failure to compute the identity of a submission."""

    retryable = False
    error_type = "identity_error"


def plan_key(template: str, tenant: str | None) -> str:
    """Return the part of an identity that its template and tenant determine: tenants share no identity."""
    return template if tenant is None else f"{template}\n{tenant}"


def identity_hash(
    plan_key: str, strategy: str, context: Mapping[str, Any], idempotency_key: str | None, fresh_id: str
) -> str:
    """Return the identity of a submission: `v1:` and 64 hexadecimal digits. Submissions of equal identity are one task.

    `plan_key` represents namespace, name and version, and the tenant if there is one. An idempotency key decides under
    every strategy. Without one, `strict` uses the context and `always_unique` uses `fresh_id`, an identifier made for
    this submission. Raises `IdentityError` for `caller_provided` without a key, for an empty key and for an unknown
    strategy; `NotStorable` for a context that is not JSON.
    """
    if idempotency_key is not None:
        return key_identity(plan_key, idempotency_key)
    if strategy == "strict":
        return _digest("context", plan_key, canonical_json(context))
    if strategy == "always_unique":
        return _digest("unique", plan_key, fresh_id)
    if strategy == "caller_provided":
        raise IdentityError(
            "idempotency_key is required when named task uses CallerProvided identity strategy",
            hint="send an idempotency_key, or change identity_strategy in the template",
        )
    raise IdentityError(f"unknown identity_strategy '{strategy}'", hint=f"expected one of: {', '.join(STRATEGIES)}")


def key_identity(plan_key: str, idempotency_key: str) -> str:
    """Return the identity of a template's submissions that have this key. Raises `IdentityError` if it is empty."""
    return _digest("key", plan_key, _checked(idempotency_key))


def fire_identity(schedule_uuid: str, kind: str, fire_at: datetime) -> str:
    """Return the identity of the task of a schedule's fire time, whichever version of the template runs it.

    A trigger at a fire time is another task than that of the schedule.
    """
    return _digest("trigger" if kind == "trigger" else "schedule", schedule_uuid, fire_at.astimezone(UTC).isoformat())


def child_identity(step_uuid: str, token: int, index: int) -> str:
    """Return the identity of the child of an item of a step, for one wait of the step."""
    return _digest("child", step_uuid, f"{token}/{index}")


def handler_identity(step_uuid: str, plan_key: str, context: Mapping[str, Any], key: str | None) -> str:
    """Return the identity of a submission within the handler of a step, the same in each of its attempts.

    `plan_key` has no version: the next attempt may know a newer one. Without a `key` the context decides. Raises
    `NotStorable` for a context that is not JSON.
    """
    content = ["context", canonical_json(context)] if key is None else ["key", key]
    return _digest("handler", plan_key, json.dumps([step_uuid, *content], separators=(",", ":")))


def canonical_json(value: Any) -> str:
    """Return JSON that is identical for equal data: keys sorted, no white space, arrays in their order.

    Equal JSON numbers are written alike (1.0 as 1, -0.0 as 0, 1e+20 with all digits). Text is compared by code points:
    composed and decomposed letters are different data. Raises `NotStorable` if the value is not strict JSON.
    """
    encode(value)
    return json.dumps(_normal(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _normal(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _normal(child) for key, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [_normal(child) for child in value]
    if isinstance(value, float) and value.is_integer():
        return int(value) if abs(value) < _EXACT else int(Decimal(repr(value)))  # as the database reads its digits
    return value


def _checked(key: str) -> str:
    if not key.strip():
        raise IdentityError("idempotency_key is empty", hint="leave it out, or send a text that names this submission")
    return key


def _digest(kind: str, plan_key: str, content: str) -> str:
    text = json.dumps([kind, plan_key, content], separators=(",", ":"))
    return f"{VERSION}:{hashlib.sha256(text.encode()).hexdigest()}"
