"""The retry policy of a step from `retry`, profiles and earlier keys.

Keys that a step sets override the profile's. `max_attempts` counts executions, including the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from tasker.template import effects
from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.documents import StepDraft, StepOverrides
from tasker.template.names import JITTER_SHARE
from tasker.template.plan import RetryPolicy

_POLICIES = (
    RetryPolicy(profile="single", retryable=False, max_attempts=1),
    RetryPolicy(profile="transient", max_attempts=3, backoff_base_ms=1000, max_backoff_ms=30_000),
    RetryPolicy(profile="critical", max_attempts=10, backoff_base_ms=5000, max_backoff_ms=300_000),
    RetryPolicy(profile="conservative", max_attempts=8, backoff_base_ms=2000, max_backoff_ms=300_000),
    RetryPolicy(profile="balanced", max_attempts=5, backoff_base_ms=1000, max_backoff_ms=60_000),
    RetryPolicy(profile="aggressive", max_attempts=3, backoff_base_ms=200, max_backoff_ms=10_000, multiplier=1.5),
    RetryPolicy(profile="external_api", max_attempts=5, backoff_base_ms=500, max_backoff_ms=30_000),
    RetryPolicy(profile="database", max_attempts=3, backoff_base_ms=100, max_backoff_ms=5000, multiplier=1.5),
    RetryPolicy(
        profile="rate_limited",
        max_attempts=10,
        backoff="linear",
        backoff_base_ms=1000,
        increment_ms=5000,
        max_backoff_ms=60_000,
    ),
    RetryPolicy(profile="health_check", max_attempts=3, backoff="fixed", backoff_base_ms=30_000),
    RetryPolicy(profile="email", max_attempts=5, backoff_base_ms=1000, max_backoff_ms=300_000, jitter=JITTER_SHARE),
)

RETRY_PROFILES: Mapping[str, RetryPolicy] = MappingProxyType({str(p.profile): p for p in _POLICIES})
"""Every profile by name."""


OLDER_KEYS = frozenset({"max_retries", "backoff_multiplier"})
"""Retry keys located under `lifecycle`."""
USUAL = RetryPolicy()
ONCE = RetryPolicy(max_attempts=1)
"""Policy of a step with `effect: once`, and default of a decision without retry settings."""
INHERITED = ("delays_ms", "jitter", "max_backoff_ms", "multiplier")
"""Fields that a fleet's settings provide for a step without retry settings."""


def retry_policy(step: StepDraft, settings: StepOverrides) -> RetryPolicy:
    """Return the policy of a step: written keys override the profile, the profile overrides the language's defaults."""
    written = _written(step, settings)
    base = _base(step, settings)
    policy = replace(base, **written) if written else base
    if not policy.retryable and "max_attempts" not in written:
        policy = replace(policy, max_attempts=1)
    _warn(step, settings, policy, written)
    return policy


def inherited(step: StepDraft, settings: StepOverrides) -> tuple[str, ...]:
    """Return the fields that a fleet's settings provide.

    A step without any retry key inherits all of `INHERITED`. A step with retry keys but without a profile inherits the
    multiplier unless it is written.
    """
    retry, lifecycle = settings.retry, step.values.get("lifecycle", {})
    if retry is None and not OLDER_KEYS & lifecycle.keys():
        return INHERITED
    written = {*(retry or {}), *lifecycle}
    return () if written & {"profile", "backoff_multiplier"} else ("multiplier",)


def _base(step: StepDraft, settings: StepOverrides) -> RetryPolicy:
    name: str | None = (settings.retry or {}).get("profile")
    if name is not None and name in RETRY_PROFILES:
        return RETRY_PROFILES[name]
    if name is not None:
        hint = did_you_mean(name, RETRY_PROFILES) or f"profiles: {listed(RETRY_PROFILES)}"
        location = step.reading.value(*settings.retry_path, "profile")
        step.report("T034", f"unknown retry profile `{name}`", location, hint)
    once = step.type is not None and step.type.traits.once and "rules" not in step.values
    return ONCE if settings.retry is None and (once or step.values.get("effect") == effects.ONCE) else USUAL


def _written(step: StepDraft, settings: StepOverrides) -> dict[str, Any]:
    retry, lifecycle = settings.retry or {}, step.values.get("lifecycle", {})
    keys = ("retryable", "max_attempts", "backoff", "backoff_base_ms", "increment_ms", "max_backoff_ms", "jitter")
    written = {key: retry[key] for key in keys if key in retry}
    _add_seconds(step, settings, written, "initial_delay", "backoff_base_ms")
    _add_seconds(step, settings, written, "max_delay", "max_backoff_ms")
    _add_max_retries(step, settings, lifecycle, written)
    for key in ("never_on", "only_on"):
        if key in retry:
            written[key] = tuple(dict.fromkeys(retry[key]))
    if "max_elapsed" in retry:
        written["max_elapsed_ms"] = round(retry["max_elapsed"] * 1000)
    _add_multiplier(step, settings, lifecycle, written)
    return written


def _add_seconds(step: StepDraft, settings: StepOverrides, written: dict[str, Any], older: str, key: str) -> None:
    seconds = (settings.retry or {}).get(older)
    if seconds is None:
        return
    milliseconds = round(seconds * 1000)
    if written.setdefault(key, milliseconds) != milliseconds:
        message = f"`{older}` says {milliseconds} ms and `{key}` says {written[key]} ms"
        step.report("T025", message, step.reading.key(*settings.retry_path, older), f"keep `{key}` alone")


def _add_multiplier(
    step: StepDraft, settings: StepOverrides, lifecycle: Mapping[str, Any], written: dict[str, Any]
) -> None:
    key = "backoff_multiplier"
    factors = [float(block[key]) for block in (settings.retry or {}, lifecycle) if key in block]
    if factors:
        written["multiplier"] = factors[0]
    if len(factors) > 1 and factors[0] != factors[1] and not settings.retry_overridden:
        message = f"`lifecycle` says {factors[1]:g} and `retry` says {factors[0]:g}"
        step.report("T025", message, step.reading.key(*step.path, "lifecycle", key), "keep that of `retry` alone")


def _add_max_retries(
    step: StepDraft, settings: StepOverrides, lifecycle: Mapping[str, Any], written: dict[str, Any]
) -> None:
    attempts = lifecycle.get("max_retries")
    if attempts is None or (settings.retry_overridden and "max_attempts" in written):
        return
    if written.setdefault("max_attempts", attempts) != attempts:
        message = f"`max_retries` says {attempts} and `retry.max_attempts` says {written['max_attempts']}"
        location = step.reading.key(*step.path, "lifecycle", "max_retries")
        step.report("T025", message, location, "keep `retry.max_attempts` alone")


def _warn(step: StepDraft, settings: StepOverrides, policy: RetryPolicy, written: Mapping[str, Any]) -> None:
    if written.get("max_attempts") == 0:
        message = "`max_attempts: 0` runs once, likely a configuration error"
        step.report("T080", message, _attempts_location(step, settings), "write 1 to run once, 2 for one repetition")
    elif not policy.retryable and policy.max_attempts > 1:
        message = f"`max_attempts: {policy.max_attempts}` has no effect: the step is not retryable"
        step.report("T081", message, _attempts_location(step, settings), "write `max_attempts: 1`")
    both = [rule for rule in policy.never_on if rule in policy.only_on]
    if both:
        location = step.reading.value(*settings.retry_path, "never_on", list(policy.never_on).index(both[0]))
        step.report("T062", f"`{both[0]}` is in `never_on` and in `only_on`", location, "remove it from one of them")
    if not policy.retryable and policy.only_on:
        location = step.reading.key(*settings.retry_path, "only_on")
        step.report("T083", "`only_on` has no effect: the step is not retryable", location, "remove it")
    for key, backoff in (("backoff_multiplier", "exponential"), ("increment_ms", "linear")):
        if key in (settings.retry or {}) and policy.backoff != backoff:
            message = f"`{key}` has no effect: the delays are {policy.backoff}"
            location = step.reading.key(*settings.retry_path, key)
            step.report("T083", message, location, f"write `backoff: {backoff}`, or remove it")
    if policy.backoff != "none" and policy.max_backoff_ms < policy.backoff_base_ms:
        message = f"the first delay, {policy.backoff_base_ms} ms, is above the limit of {policy.max_backoff_ms} ms"
        location = step.reading.key(*settings.retry_path, _first_written(settings))
        step.report("T082", message, location, "raise `max_backoff_ms` as well")


def _attempts_location(step: StepDraft, settings: StepOverrides) -> Any:
    if "max_attempts" in (settings.retry or {}):
        return step.reading.value(*settings.retry_path, "max_attempts")
    return step.location("lifecycle", "max_retries")


def _first_written(settings: StepOverrides) -> str:
    keys = ("backoff_base_ms", "initial_delay", "max_backoff_ms", "max_delay")
    return next((key for key in keys if key in (settings.retry or {})), "profile")
