"""Defaults of a single process that does everything: `tasker run`, `tasker dev`, `App`.

It runs on a machine with other work, mostly with the embedded database, and its user is watching.
"""

from __future__ import annotations

SINGLE_PROCESS_CONCURRENCY = 200
"""Steps at a time. No other process takes ready steps, so ten would limit the whole workflow. With two hundred, one
half is written while the other half runs, in batches of an efficient size.
"""

SINGLE_PROCESS_DECISION_DEPTH = 3
SINGLE_PROCESS_WARN_DECISION_DEPTH = 2
"""Single-process values of `DECISION_DEPTH` and `WARN_DECISION_DEPTH`. A configuration written by `tasker config init`
has the same values, so a fleet that uses it refuses the same tasks as a laptop.
"""

SINGLE_PROCESS_SLOW_COMPLETION_MS = 10_000
"""Single-process value of `SLOW_COMPLETION_MS`: a laptop's disk is sometimes slow, no reason to stop claiming."""

SINGLE_PROCESS_CRITICAL_DEPTH = 100_000
"""Single-process value of `CRITICAL_DEPTH`: a program that submits many tasks at once works them off itself."""

SINGLE_PROCESS_OVERFLOW_DEPTH = 200_000
"""Single-process value of `OVERFLOW_DEPTH`."""
