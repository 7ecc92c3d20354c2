"""Defaults of circuit breakers: thresholds of consecutive failures and successes, and times."""

from __future__ import annotations

BREAKER_FAILURES = 5
"""Consecutive failures that open a breaker."""

BREAKER_SUCCESSES = 2
"""Consecutive successes that close a half-open breaker."""

BREAKER_TIMEOUT_SECONDS = 30
"""Seconds that an open breaker refuses calls before it allows a trial."""

BREAKER_SETTLE_SECONDS = 5.0
"""Minimum seconds between opening and closing a breaker."""

READINESS_FAILURES = 10
"""Consecutive failures that open the breaker around promoting and sweeping."""

READINESS_SUCCESSES = 3
"""Consecutive successes that close this breaker when it is half-open."""

SLOW_COMPLETION_MS = 100
"""Time to store a result above which the write counts as a failure."""

COMPLETION_TIMEOUT_SECONDS = 5
"""Seconds that the breaker around storing results refuses calls."""
