"""What the author of a template wrote, told apart from what a fleet's settings and a release add to it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, Field, fields, replace
from functools import cache
from typing import Any

from tasker.contracts.plan import Plan, RetryPolicy, StepPlan
from tasker.contracts.rules.retry_profiles import RETRY_PROFILES

FOLLOWS = frozenset({"ordinal", "level", "static", "retry", "inherits", "environment"})
"""What the compiler works out, the name of an environment (its overrides are applied), and the policy of a step:
that is looked at more closely."""

USUAL = RetryPolicy()
POLICY = tuple(each.name for each in fields(RetryPolicy) if each.name != "profile")
TELLING = frozenset({"delays_ms", "multiplier"})
"""Whether these are inherited tells a step that says nothing about retries from one that writes the defaults down."""


def content_hash(plan: Plan) -> str:
    """SHA-256 of what the author wrote, 64 hexadecimal digits.

    Whatever has its default is left out, so that a key which a release adds changes no template that lacks it.
    """
    text = json.dumps(plan, default=_written, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def with_defaults(plan: Plan, defaults: RetryPolicy) -> Plan:
    """The plan with a fleet's defaults where its steps inherit them; the same object when nothing changes."""
    steps = tuple(_inheriting(step, defaults) for step in plan.steps)
    return plan if steps == plan.steps else replace(plan, steps=steps)


def _inheriting(step: StepPlan, defaults: RetryPolicy) -> StepPlan:
    if not step.inherits:
        return step
    return replace(step, retry=replace(step.retry, **{name: getattr(defaults, name) for name in step.inherits}))


def _written(part: Any) -> dict[str, Any]:
    """The fields of a part of the plan in which it differs from the defaults."""
    kept = _kept(part.__class__)
    values = {name: found for name, default in kept if (found := getattr(part, name)) != default}
    return {**values, "retry": _policy(part)} if isinstance(part, StepPlan) else values


@cache
def _kept(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    """The names of the fields that count, with their defaults."""
    return tuple((each.name, _default(each)) for each in fields(kind) if each.name not in FOLLOWS)


def _default(each: Field[Any]) -> Any:
    return each.default if each.default_factory is MISSING else each.default_factory()


def _policy(step: StepPlan) -> dict[str, Any]:
    """What differs from the profile, without what is inherited."""
    base = RETRY_PROFILES.get(step.retry.profile or "", USUAL)
    changed = {
        name: value
        for name in POLICY
        if (value := getattr(step.retry, name)) != getattr(base, name) and name not in step.inherits
    }
    return {**changed, "profile": step.retry.profile, "inherits": sorted(TELLING.intersection(step.inherits))}
