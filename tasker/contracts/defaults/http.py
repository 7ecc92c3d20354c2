"""Defaults of HTTP servers and clients."""

from __future__ import annotations

REQUEST_TIMEOUT_MS = 30_000
"""Timeout of one request."""

REQUEST_BURST = 100
"""Requests that one client may send at once under a rate limit."""

HTTP_POOL_SIZE = 20
"""Database connections reserved for requests."""

HTTP_MAX_CONNECTIONS = 30
"""Maximum number of these connections."""

HTTP_ACQUIRE_TIMEOUT_SECONDS = 30
"""Maximum wait of a request for a connection."""

HTTP_IDLE_TIMEOUT_SECONDS = 600
"""Idle time after which such a connection is closed."""

TOTAL_CONNECTIONS_HINT = 50
"""Expected number of connections of all processes of a fleet."""

CLIENT_TIMEOUT_MS = 30_000
"""Timeout of one call of Tasker's own client."""
