"""The defaults of sweeps: when something counts as forgotten, and how often it is looked for."""

from __future__ import annotations

SWEEP_INTERVAL_SECONDS = 5
"""Period of the sweep."""

SWEEP_SLICE = 500
"""Open tasks per query."""

HINT_GRACE_MS = 5_000
"""Age of an enqueued step before its message is looked for."""

PARK_GRACE_MS = 5_000
"""Age of a stored result before somebody else processes it."""

IDLE_GRACE_MS = 2_000
"""How long a task may stand in a passing state."""

UNSERVED_TIMEOUT_SECONDS = 3600
"""How long no worker may have had a step's handler before the step fails."""

FORGET_WORKERS_SECONDS = 86_400
"""How long a process that is gone stays in the registry."""

STORM_WINDOW_SECONDS = 600
"""The window in which the failures of one step are counted as a storm."""

STORM_PAUSES = "namespace"
"""What a storm pauses."""
