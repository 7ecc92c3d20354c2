"""Default values that several modules need. Sizes are bytes."""

from __future__ import annotations

ENQUEUE_WINDOW = 2000
"""Enqueued steps per namespace above which further ready steps stay pending."""

STEP_TIMEOUT_MS = 30_000
"""Timeout of one attempt if the template sets none."""

STEP_GRACE_MS = 10_000
"""Time after its timeout at which a sweep takes a running step from its worker."""

LEASE_MS = 15_000
"""Time that a silent worker keeps its steps."""

STARVATION_MS = 10_000
"""Wait of a step for a thread above which a warning is logged."""

LONGEST_STOP_MS = 300_000
"""Maximum of `orchestration.shutdown_timeout_ms`."""

LONGEST_OPTION_SECONDS = 3600
"""Maximum of a worker's option --shutdown-timeout."""

DECISION_DEPTH = 20
"""Maximum number of decisions above each other."""

WARN_DECISION_DEPTH = 10
"""Depth of decisions at which a warning is logged."""

MAX_BACKOFF_MS = 30_000
"""Maximum delay before a retry for templates that enable retries without a maximum."""

STEPS_PER_DECISION = 100
"""Maximum number of steps that one decision may name."""

WARN_STEPS_PER_DECISION = 50
"""Number of named steps at which a warning is logged."""

KEPT_LOG_LINES = 1_000
"""Log lines of one attempt that are stored with its step."""

MARK_SLICE = 2000
"""Number of backlogged steps whose pause marks one transaction changes."""

REPLAY_STEPS = 1000
"""Number of steps that one transaction of a replay resets, or all of one task."""

CLAIM_BYTES = 16 * 1024 * 1024
"""Maximum size of the inputs, results or events in one answer of the database, unless a single one is larger."""

VALUE_LIMIT_BYTES = 4 * 1024 * 1024
"""Maximum size of a task's context and of a step's result, as JSON."""
HTTP_BODY_BYTES = 16 * 1024 * 1024
"""Maximum size of the body of an HTTP request."""
HTTP_STREAMS = 1000
"""Maximum number of clients that follow tasks concurrently."""

REDACTED = "***REDACTED***"
"""Replacement of redacted values."""

ENVIRONMENT = "development"
"""Default environment of a process."""

ON_BLOCKED = "give_up"
"""A task that failed steps block ends in `error`."""

SEARCH_PATHS = ("config/tasks/**/*.{yml,yaml}",)
"""Default patterns of template files."""
