"""Named retry policies that a template may choose with `retry: {profile: NAME}`.

Keys that a step sets override the profile's. `max_attempts` counts executions, including the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tasker.contracts.defaults.retries import JITTER_SHARE
from tasker.contracts.plan import RetryPolicy

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
