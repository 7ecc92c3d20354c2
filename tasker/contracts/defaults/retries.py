"""The defaults of retries."""

from __future__ import annotations

MAX_ATTEMPTS = 3
"""Executions of a step, the first included."""

BACKOFF_BASE_MS = 1000
"""Delay after the first failure."""

BACKOFF_MULTIPLIER = 2.0
"""Factor by which exponential delays grow."""

JITTER_SHARE = 0.15
"""Share of a delay that is added or taken away at most, where delays are spread."""
