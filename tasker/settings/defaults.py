"""Values of settings that clients and command lines need without the tables."""

from __future__ import annotations

LONGEST_STOP_MS = 300_000
"""Maximum of `orchestration.shutdown_timeout_ms`."""

LONGEST_OPTION_SECONDS = 3600
"""Maximum of a worker's option --shutdown-timeout."""

KEY_HEADER = "X-API-Key"
"""Header that carries an API key."""

CLIENT_TIMEOUT_MS = 30_000
"""Timeout of one call of Tasker's own client."""
