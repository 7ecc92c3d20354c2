"""Legal names, and the bounds and defaults of numbers in templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
NAME_RULE = "use letters, digits, `_`, `-` and `.`, without spaces"
LIMIT_NAME = r"[A-Za-z0-9_][A-Za-z0-9_-]*"
LIMIT_NAME_RULE = "use letters, digits, `_` and `-`: it is a table of the configuration"
VERSION = rf"{NAME}(?:\+[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*)?"
VERSION_RULE = f"{NAME_RULE}; build metadata of SemVer may follow behind a `+`: 1.0.0+build.5"
MAX_NAME = 128
MOST_SUBJECT = 200
"""Characters of the name of a person who decides."""
"""Maximum number of characters."""


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


MAX_ATTEMPTS = 3
"""Executions of a step, including the first."""

BACKOFF_BASE_MS = 1000
"""Delay after the first failure."""

BACKOFF_MULTIPLIER = 2.0
"""Growth factor of exponential delays."""

JITTER_SHARE = 0.15
"""Maximum share of a delay that jitter adds or subtracts."""


MAX_SECONDS = 366 * 24 * 3600
"""One year: the maximum of an attempt or a delay. A larger value is a mistake in the unit."""

MAX_MILLISECONDS = MAX_SECONDS * 1000

MAX_MINUTES = 10 * 366 * 24 * 60
"""Ten years: the maximum age at which a task becomes stale."""

HIGHEST_MAX_ATTEMPTS = 1_000_000

MAX_MULTIPLIER = 100

MAX_COUNT = 2**31 - 1
"""Maximum of items or batches: the range of an integer column."""

MOST_BATCHES = 50_000
"""Default maximum of batches that one step may create."""

MIN_PRIORITY, MAX_PRIORITY = -(2**31), 2**31 - 1
"""Range of a task's priority, that of its column."""
PriorityName: TypeAlias = Literal["critical", "high", "normal", "low", "bulk"]
NAMED_PRIORITIES: Final[Mapping[str, int]] = {"critical": 100, "high": 10, "normal": 0, "low": -10, "bulk": -100}
"""Priorities by name. A point is worth ten minutes of waiting."""
PRIORITY_EXPECTED = f"expected {', '.join(NAMED_PRIORITIES)}, or a whole number from {MIN_PRIORITY} to {MAX_PRIORITY}"

MAX_POSITION = 2**63 - 1
"""Largest position of a domain event, that of its column."""


MAX_BACKOFF_MS = 30_000
"""Maximum delay before a retry for templates that enable retries without a maximum."""


def parse_priority(value: object) -> int | None:
    """Return the number of a priority, given as a number or a name; None for a value that is neither."""
    if isinstance(value, str):
        return NAMED_PRIORITIES.get(value)
    if isinstance(value, int) and not isinstance(value, bool) and MIN_PRIORITY <= value <= MAX_PRIORITY:
        return int(value)
    return None


COLLECT, COLLECTED = "collect", "collected"
"""What keeps all inputs of a debounce key, and the property of the input that has them."""
