"""Limits of the connections of one listening socket."""

from __future__ import annotations

import resource
from dataclasses import field

from tasker.contracts.dataclasses import dataclass

OTHER_FILES = 100
"""Descriptors left to the rest of the process: connections to the database, logs, pipes."""
FEWEST, MOST = 16, 1_000_000


def default_connections() -> int:
    """Return how many connections fit into the limit of open files (`ulimit -n`) of this process."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST
    return max(FEWEST, min(MOST, files - OTHER_FILES))


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one connection, one client, and all of them may use. Times are seconds."""

    connections: int = field(default_factory=default_connections)
    """Open at the same time; further ones wait until one is closed."""
    per_client: int = 0
    """Of one address, or one IPv6 network of 64 bits; 0: half of `connections`."""
    head_bytes: int = 65_536
    """Request line and headers of one request."""
    headers: int = 100
    """Header fields of one request, trailers included."""
    head_seconds: float = 20.0
    """From the first byte of a request to the end of its headers, and from a connection to its first request."""
    rest_seconds: float = 5.0
    """How long the rest of a request is read and dropped after its answer."""
    stall_seconds: float = 75.0
    """How long a client may take nothing of an answer that waits for it."""
    age_seconds: float = 300.0
    """A connection of this age is closed with its next answer, so that clients spread over all processes."""
    pipelined: int = 16
    """Requests that wait for the answer to an earlier one of their connection."""

    def of_one_client(self) -> int:
        """Return how many connections one client may have."""
        return self.per_client or max(1, self.connections // 2)
