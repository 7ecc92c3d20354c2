"""What counts in place of a fleet's defaults where one process does everything: `tasker run`, `tasker dev`, `App`.

Its user watches it, on a machine that does other things as well, mostly with the embedded database.
"""

from __future__ import annotations

SINGLE_PROCESS_CONCURRENCY = 200
"""Steps at a time. Nobody else takes what is ready, so ten would be the limit of the whole workflow. Of two hundred one
half is written while the other runs, each in writes as large as pay."""

SINGLE_PROCESS_DECISION_DEPTH = 3
SINGLE_PROCESS_WARN_DECISION_DEPTH = 2
"""As `DECISION_DEPTH` and the depth that is warned of. A configuration of `tasker config init` says the same:
what a laptop refuses, a fleet that was set up like that refuses as well."""

SINGLE_PROCESS_SLOW_COMPLETION_MS = 10_000
"""As `SLOW_COMPLETION_MS`. The disk of a laptop takes long for a commit now and then, and to stop claiming for
that would only make its user wait."""

SINGLE_PROCESS_CRITICAL_DEPTH = 100_000
"""As `CRITICAL_DEPTH`. A program that submits much at once works it off itself."""

SINGLE_PROCESS_OVERFLOW_DEPTH = 200_000
"""As `OVERFLOW_DEPTH`."""
