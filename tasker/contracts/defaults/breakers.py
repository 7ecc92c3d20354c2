"""The defaults of circuit breakers: failures in a row that open one, successes that close it, and its times."""

from __future__ import annotations

BREAKER_FAILURES = 5
"""Failures in a row that open a breaker."""

BREAKER_SUCCESSES = 2
"""Successes in a row, half-open, that close it."""

BREAKER_TIMEOUT_SECONDS = 30
"""How long it refuses before it lets a trial pass."""

BREAKER_SETTLE_SECONDS = 5.0
"""It closes so long after it opened at the earliest."""

READINESS_FAILURES = 10
"""Failures in a row that open the breaker around promoting and sweeping."""

READINESS_SUCCESSES = 3
"""Successes in a row, half-open, that close it."""

SLOW_COMPLETION_MS = 100
"""A result that took longer to store counts as a failure of storing."""

COMPLETION_TIMEOUT_SECONDS = 5
"""How long the breaker around storing results refuses."""
