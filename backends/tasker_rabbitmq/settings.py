"""What can be set about the backend."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any

from tasker.contracts.clock import Clock
from tasker.errors import MessagingError

_PREFIX = re.compile(r"[A-Za-z0-9_.-]{0,100}", re.ASCII)


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The current time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()


@dataclass(frozen=True, slots=True)
class RabbitmqSettings:
    """Where the broker is and how it is used."""

    url: str = "amqp://guest:guest@localhost:5672/%2F"
    """AMQP address; the virtual host `/` is written `%2F` (A-70)."""
    prefix: str = ""
    """Put before every name on the broker, so that several databases can share one virtual host."""
    prefetch_count: int = 100
    """Messages of a subscribed queue that are brought here before somebody takes them, 1 to 65535 (F-231g)."""
    heartbeat_seconds: int = 30
    """Silence after which the connection counts as lost, 0 to 3600; 0 turns the check off (F-231g)."""
    connection_timeout_seconds: float = 30.0
    """How long `open` waits for the broker."""
    delivery_limit: int = 1000
    """How often a message may come back before it is moved to the dead letters, 1 to 1000000."""
    clock: Clock = field(default_factory=SystemClock)
    """Measures visibility timeouts and stamps messages."""

    def __post_init__(self) -> None:
        _check_range("prefetch_count", self.prefetch_count, 1, 65535)
        _check_range("heartbeat_seconds", self.heartbeat_seconds, 0, 3600)
        _check_range("connection_timeout_seconds", self.connection_timeout_seconds, 0.1, 3600)
        _check_range("delivery_limit", self.delivery_limit, 1, 1_000_000)
        if not _PREFIX.fullmatch(self.prefix):
            raise _invalid("prefix", self.prefix, "up to 100 letters, digits, '_', '-' or '.'")
        if not self.url.startswith(("amqp://", "amqps://")):
            raise _invalid("url", self.url.partition("@")[2] or self.url, "an address like amqp://user:password@host:5672/%2F")

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> RabbitmqSettings:
        """The settings in a mapping. Raises `MessagingError` that names the key."""
        known = [item.name for item in fields(cls)]
        for key in given:
            if key not in known:
                close = get_close_matches(key, known, 1)
                raise MessagingError(
                    f"the rabbitmq backend has no setting {key!r}; it has: {', '.join(known)}",
                    retryable=False,
                    hint=f"did you mean {close[0]!r}?" if close else None,
                )
        return cls(**given)


def _check_range(name: str, value: object, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise _invalid(name, value, f"a number from {low} to {high}")


def _invalid(name: str, value: object, expected: str) -> MessagingError:
    return MessagingError(f"rabbitmq setting {name!r} should be {expected}, found {value!r}", retryable=False)
