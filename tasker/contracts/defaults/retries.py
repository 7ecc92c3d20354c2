"""Defaults of retries."""

from __future__ import annotations

MAX_ATTEMPTS = 3
"""Executions of a step, including the first."""

BACKOFF_BASE_MS = 1000
"""Delay after the first failure."""

BACKOFF_MULTIPLIER = 2.0
"""Growth factor of exponential delays."""

JITTER_SHARE = 0.15
"""Maximum share of a delay that jitter adds or subtracts."""
