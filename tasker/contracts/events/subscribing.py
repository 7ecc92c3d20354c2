"""What a subscriber of domain events in the same process may take."""

from __future__ import annotations

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults.workers import SUBSCRIBER_BUFFER, SUBSCRIBER_TIMEOUT_MS


@dataclass(frozen=True, slots=True)
class SubscriberLimits:
    """Of each of them. `log_errors` says whether what it raises is logged by itself."""

    buffer: int = SUBSCRIBER_BUFFER
    """Events that wait for it at most; what comes while so many wait is dropped and counted."""
    timeout_ms: int = SUBSCRIBER_TIMEOUT_MS
    """Whoever takes longer for one event is named in the log. A thread cannot be stopped: it holds up itself alone."""
    log_errors: bool = True


LIMITS = SubscriberLimits()
