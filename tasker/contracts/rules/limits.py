"""Bounds of user-supplied numbers, so that each fits its time type or column."""

from __future__ import annotations

MAX_SECONDS = 366 * 24 * 3600
"""One year: the maximum of an attempt or a delay. A larger value is a mistake in the unit."""

MAX_MILLISECONDS = MAX_SECONDS * 1000

MAX_MINUTES = 10 * 366 * 24 * 60
"""Ten years: the maximum age at which a task becomes stale."""

MAX_ATTEMPTS = 1_000_000

MAX_MULTIPLIER = 100

MAX_COUNT = 2**31 - 1
"""Maximum of items or batches: the range of an integer column."""

MOST_BATCHES = 50_000
"""Default maximum of batches that one step may create."""

MIN_PRIORITY, MAX_PRIORITY = -(2**31), 2**31 - 1
"""Range of a task's priority, that of its column."""

MAX_POSITION = 2**63 - 1
"""Largest position of a domain event, that of its column."""
