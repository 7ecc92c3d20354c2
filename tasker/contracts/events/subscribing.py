"""Limits of in-process subscribers of domain events."""

from __future__ import annotations

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults.workers import SUBSCRIBER_BUFFER, SUBSCRIBER_TIMEOUT_MS


@dataclass(frozen=True, slots=True)
class SubscriberLimits:
    """Limits of each subscriber. `log_errors`: whether the errors that it raises are logged automatically."""

    buffer: int = SUBSCRIBER_BUFFER
    """Maximum number of events waiting for the subscriber; further events are dropped and counted."""
    timeout_ms: int = SUBSCRIBER_TIMEOUT_MS
    """Time for one event after which the subscriber is logged by name. It is not stopped and delays no other."""
    log_errors: bool = True


LIMITS = SubscriberLimits()
