"""Limits of the connections of one listening socket."""

from __future__ import annotations

import resource
from dataclasses import field

from tasker.dataclasses import dataclass

OTHER_FILES = 100
"""Descriptors reserved for the rest of the process: database connections, logs, pipes."""
FEWEST, MOST = 16, 1_000_000


def default_connections() -> int:
    """Return how many connections fit into the open-files limit (`ulimit -n`) of this process."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST
    return max(FEWEST, min(MOST, files - OTHER_FILES))


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of one connection, of one client, and of all connections together. Times are in seconds."""

    connections: int = field(default_factory=default_connections)
    """Maximum number of open connections; further ones wait until one is closed."""
    per_client: int = 0
    """Maximum number of connections of one address or one IPv6 /64 network; 0 means half of `connections`."""
    head_bytes: int = 65_536
    """Maximum size of the request line and headers of one request."""
    headers: int = 100
    """Maximum number of header fields of one request, trailers included."""
    head_seconds: float = 20.0
    """Time from the first byte of a request to the end of its headers, and from connecting to the first request."""
    rest_seconds: float = 5.0
    """Time during which the rest of a request is read and discarded after its answer."""
    stall_seconds: float = 75.0
    """Time after which a client that reads nothing of a waiting answer is disconnected."""
    age_seconds: float = 300.0
    """Age after which a connection is closed with its next answer, so that clients spread over all processes."""
    pipelined: int = 16
    """Maximum number of requests that wait for the answer to an earlier request of their connection."""

    def of_one_client(self) -> int:
        """Return how many connections one client may have."""
        return self.per_client or max(1, self.connections // 2)
