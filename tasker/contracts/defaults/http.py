"""The defaults of what answers over HTTP."""

from __future__ import annotations

REQUEST_TIMEOUT_MS = 30_000
"""Limit of one request."""

REQUEST_BURST = 100
"""Requests of one client at once, where they are limited."""

HTTP_POOL_SIZE = 20
"""Connections to the database kept for requests."""

HTTP_MAX_CONNECTIONS = 30
"""The most of them."""

HTTP_ACQUIRE_TIMEOUT_SECONDS = 30
"""How long a request waits for one."""

HTTP_IDLE_TIMEOUT_SECONDS = 600
"""One that was idle for so long is closed."""

TOTAL_CONNECTIONS_HINT = 50
"""How many connections of all processes of a fleet a person expects."""

CLIENT_TIMEOUT_MS = 30_000
"""Limit of one call of a client of ours."""
