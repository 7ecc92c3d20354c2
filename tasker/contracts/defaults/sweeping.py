"""Defaults of sweeps: their interval, and the age at which something counts as lost."""

from __future__ import annotations

SWEEP_INTERVAL_SECONDS = 5
"""Interval of the sweep."""

SWEEP_SLICE = 500
"""Open tasks per query."""

HINT_GRACE_MS = 5_000
"""Age of an enqueued step at which the sweep checks that its message exists."""

PARK_GRACE_MS = 5_000
"""Age of a stored result at which another process handles it."""

IDLE_GRACE_MS = 2_000
"""Time that a task may stay in a transient state."""

UNSERVED_TIMEOUT_SECONDS = 3600
"""Time without a live worker that has a step's handler, after which the step fails."""

FORGET_WORKERS_SECONDS = 86_400
"""Time that an ended process stays in the registry."""

STORM_WINDOW_SECONDS = 600
"""Window in which the failures of one step are counted as a failure burst."""

STORM_PAUSES = "namespace"
"""Target of the pause after a failure burst."""
