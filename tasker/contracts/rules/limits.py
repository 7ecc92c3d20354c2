"""The bounds of the numbers that people give, so that none reaches a time or a column that cannot hold it."""

from __future__ import annotations

MAX_SECONDS = 366 * 24 * 3600
"""A year: what one attempt may take or one delay may last. More is a mistake in the unit."""

MAX_MILLISECONDS = MAX_SECONDS * 1000

MAX_MINUTES = 10 * 366 * 24 * 60
"""Ten years: after which a task may count as stale."""

MAX_ATTEMPTS = 1_000_000

MAX_MULTIPLIER = 100

MAX_COUNT = 2**31 - 1
"""Items, batches: what an integer column holds."""

MOST_BATCHES = 50_000
"""That one step may cut its work into, where the configuration says nothing else."""

MIN_PRIORITY, MAX_PRIORITY = -(2**31), 2**31 - 1
"""Of a task, as its column holds it."""

MAX_POSITION = 2**63 - 1
"""Of a domain event, as its column holds it."""
