"""Limits and defaults that are no settings, or that a client needs without the settings."""

from __future__ import annotations

LONGEST_STOP_MS = 300_000
"""Maximum of `orchestration.shutdown_timeout_ms`."""

LONGEST_OPTION_SECONDS = 3600
"""Maximum of a worker's option --shutdown-timeout."""

MARK_SLICE = 2000
"""Number of backlogged steps whose pause marks one transaction changes."""

REPLAY_STEPS = 1000
"""Number of steps that one transaction of a replay resets, or all of one task."""

CLAIM_BYTES = 16 * 1024 * 1024
"""Maximum size of the inputs, results or events in one answer of the database, unless a single one is larger."""

KEY_HEADER = "X-API-Key"
"""Header that carries an API key."""

PAGE_SESSION_SECONDS = 12 * 3600
"""Longest time that somebody stays signed in on the web page."""

CLIENT_TIMEOUT_MS = 30_000
"""Timeout of one call of Tasker's own client."""

STOP_GRACE_SECONDS = 10.0
"""Time that a stopping program or server waits for running work."""
