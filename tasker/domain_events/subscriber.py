"""Base class of subscribers to events of this process."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable
from fnmatch import fnmatchcase
from typing import Any

from tasker.contracts.events.subscribing import LIMITS
from tasker.domain_events.awaiting import awaited
from tasker.domain_events.poller import InProcessDomainEventPoller

log = logging.getLogger("tasker.domain_events")


class BaseSubscriber(ABC):
    """Handles the events whose name matches one of its patterns (`payment.*`, `order.completed`).

    `handle` and the hooks around it may be async: they run in the subscriber's own thread, all in one event loop, and a
    call that takes longer than `dispatch_timeout_ms` is cancelled.
    """

    failed = 0
    """Number of events whose handling failed."""
    _poller: InProcessDomainEventPoller | None = None

    def __init__(self) -> None:
        self._active = False

    @classmethod
    @abstractmethod
    def subscribes_to(cls) -> list[str]:
        """Return the patterns; `*` stands for anything."""

    @abstractmethod
    def handle(self, event: dict[str, Any]) -> Awaitable[None] | None:
        """Process an event."""

    @property
    def subscriber_name(self) -> str:
        """Name in the log: by default that of the class."""
        return type(self).__name__

    @property
    def active(self) -> bool:
        """True between `start` and `stop`."""
        return self._active

    @property
    def subscriptions(self) -> list[str]:
        """Patterns of this instance."""
        return list(self.subscribes_to())

    def before_handle(self, event: dict[str, Any]) -> Awaitable[bool] | bool:
        """Return False to skip an event; called before `handle`."""
        return True

    def after_handle(self, event: dict[str, Any]) -> Awaitable[None] | None:  # noqa: B027 (an optional hook)
        """Observe that `handle` returned."""

    def on_handle_error(self, event: dict[str, Any], error: Exception) -> Awaitable[None] | None:
        """Handle an exception of `handle` or of the hooks around it; logs it by default, unless logging is disabled."""
        if self._poller is None or self._poller.limits.log_errors:
            log.error("%s failed at %s", self.subscriber_name, event.get("event_name"), exc_info=error)
        return None

    def matches(self, event_name: str) -> bool:
        """Return True if a pattern matches."""
        return any(fnmatchcase(event_name, pattern) for pattern in self.subscribes_to())

    def start(self, poller: InProcessDomainEventPoller) -> None:
        """Start to receive the events of the poller."""
        if not self._active:
            self._active = True
            if self._poller is not poller:
                self._poller = poller
                poller.on_event(self._receive, wants=self._wants)

    def stop(self) -> None:
        """Stop receiving events."""
        self._active = False

    def _wants(self, event_name: str) -> bool:
        return self._active and self.matches(event_name)

    def _receive(self, event: dict[str, Any]) -> None:
        if self._active:
            self.handle_event_safely(event)

    def handle_event_safely(self, event: dict[str, Any]) -> None:
        """Handle one event with its hooks. Never raises."""
        try:
            if self._awaited(self.before_handle(event)):
                self._awaited(self.handle(event))
                self._awaited(self.after_handle(event))
        except Exception as error:
            self.failed += 1
            self._report(event, error)

    def _report(self, event: dict[str, Any], error: Exception) -> None:
        try:
            self._awaited(self.on_handle_error(event, error))
        except Exception:
            log.exception("on_handle_error of %s failed", self.subscriber_name)

    def _awaited(self, returned: Any) -> Any:
        limits = LIMITS if self._poller is None else self._poller.limits
        return awaited(returned, limits.timeout_ms / 1000)
