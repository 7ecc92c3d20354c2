"""What counts where nobody says otherwise, for numbers that several modules need. Sizes are bytes."""

from __future__ import annotations

ENQUEUE_WINDOW = 2000
"""Enqueued steps per namespace before further ready ones are held back."""

STEP_TIMEOUT_MS = 30_000
"""Limit of one attempt where the template sets none."""

STEP_GRACE_MS = 10_000
"""How long after its timeout a step counts as running before a sweep takes it away."""

LEASE_MS = 15_000
"""How long a worker that went silent keeps its steps."""

STARVATION_MS = 10_000
"""How long a step waits for a thread before it is warned of."""

LONGEST_STOP_MS = 300_000
"""The most that `orchestration.shutdown_timeout_ms` may be."""

LONGEST_OPTION_SECONDS = 3600
"""The most that the option --shutdown-timeout of a worker may be."""

DECISION_DEPTH = 20
"""How many decisions may be above each other."""

WARN_DECISION_DEPTH = 10
"""From how many on it is warned of."""

MAX_BACKOFF_MS = 30_000
"""The longest delay before a retry where a template says that there are some, and not how long they may be."""

STEPS_PER_DECISION = 100
"""How many steps one decision may name."""

WARN_STEPS_PER_DECISION = 50
"""From how many named steps on it is warned of."""

KEPT_LOG_LINES = 1_000
"""How many lines of one attempt are kept with its step."""

VALUE_LIMIT_BYTES = 4 * 1024 * 1024
"""Largest context of a task, and largest result of a step, as JSON."""
HTTP_BODY_BYTES = 16 * 1024 * 1024
"""The body of one HTTP request at most."""
HTTP_STREAMS = 1000
"""So many clients may follow tasks at the same time."""

REDACTED = "***REDACTED***"
"""What is shown in place of a secret."""

ENVIRONMENT = "development"
"""The environment of a process that is told none."""

ON_BLOCKED = "give_up"
"""A task that failed steps block ends in `error`."""

SEARCH_PATHS = ("config/tasks/**/*.{yml,yaml}",)
"""Patterns of the template files that are found where none is named."""
