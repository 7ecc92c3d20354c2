"""Content hash of a template: covers what its author wrote, not the defaults of a fleet or a release."""

from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, Field, fields, replace
from functools import cache
from typing import Any

from tasker.template.plan import Plan, RetryPolicy, StepPlan
from tasker.template.retry import RETRY_PROFILES

FOLLOWS = frozenset({"ordinal", "level", "static", "retry", "inherits", "environment"})
"""Fields that the hash ignores: those computed by the compiler, the environment's name (its overrides are already
applied), and the retry policy of a step, which `_policy` compares field by field.
"""

USUAL = RetryPolicy()
POLICY = tuple(field.name for field in fields(RetryPolicy) if field.name != "profile")
TELLING = frozenset({"delays_ms", "multiplier"})
"""Fields whose inheritance is hashed: it distinguishes a step without retry settings from one with the defaults."""


def content_hash(plan: Plan) -> str:
    """Return the SHA-256 of what the author wrote, as 64 hexadecimal digits.

    Fields that have their default value are left out, so a key added by a release does not change the hash of templates
    without it.
    """
    text = json.dumps(plan, default=_written, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def with_defaults(plan: Plan, defaults: RetryPolicy) -> Plan:
    """Return the plan with a fleet's defaults in the fields that steps inherit; the same object if nothing changes."""
    steps = tuple(_inheriting(step, defaults) for step in plan.steps)
    return plan if steps == plan.steps else replace(plan, steps=steps)


def _inheriting(step: StepPlan, defaults: RetryPolicy) -> StepPlan:
    if not step.inherits:
        return step
    return replace(step, retry=replace(step.retry, **{name: getattr(defaults, name) for name in step.inherits}))


def _written(part: Any) -> dict[str, Any]:
    defaults = _hashed_fields(part.__class__)
    values = {name: value for name, default in defaults if (value := getattr(part, name)) != default}
    return {**values, "retry": _policy(part)} if isinstance(part, StepPlan) else values


@cache
def _hashed_fields(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, _default(field)) for field in fields(kind) if field.name not in FOLLOWS)


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _policy(step: StepPlan) -> dict[str, Any]:
    """Return the fields that differ from the step's retry profile, without inherited ones."""
    base = RETRY_PROFILES.get(step.retry.profile or "", USUAL)
    changed = {
        name: value
        for name in POLICY
        if (value := getattr(step.retry, name)) != getattr(base, name) and name not in step.inherits
    }
    return {**changed, "profile": step.retry.profile, "inherits": sorted(TELLING.intersection(step.inherits))}
