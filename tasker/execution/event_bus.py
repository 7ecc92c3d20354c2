"""Publication of the events of accepted results in this process: subscribers, publishers and the log."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from tasker.engine.exchange import AnnouncedEvents, Result
from tasker.execution.custom_publishers import CustomPublishers
from tasker.handlers.claims import Claim
from tasker.handlers.events.delivery import SubscriberThread
from tasker.handlers.events.poller import CAPACITY, InProcessChannel, InProcessDomainEventPoller, shared
from tasker.handlers.events.registries import SubscriberRegistry
from tasker.logging.lines import ids_of, log_line
from tasker.plugins.hook_arguments import EventPublished
from tasker.settings.listening import SeenEvents
from tasker.settings.queues import InProcessEvents

OnPublished = Callable[[EventPublished], None]
_log = logging.getLogger("tasker.domain_events")

LIMITS = InProcessEvents()


class AcceptedEventBus:
    """Best-effort bus of domain events, which never delays a step.

    Events go into the bounded channel of the process. A thread moves them to the thread and queue of each subscriber,
    within `limits`. A full queue drops events and counts them. An event that is published again reaches each subscriber
    once; the last `remembered` events are known.

    `capacity` is the size of the channel; `log_dropped` logs every dropped event. The thread starts with the first
    event, unless the program has a poller of its own; `drain_seconds` is how long `close` waits for remaining events.
    `on_published` gets every event.
    """

    def __init__(
        self,
        custom: CustomPublishers,
        drain_seconds: float = 5.0,
        *,
        capacity: int = CAPACITY,
        log_dropped: bool = True,
        channel: InProcessChannel = shared,
        on_published: OnPublished | None = None,
        limits: InProcessEvents = LIMITS,
        remembered: int = SeenEvents.deduplication_cache_size,
    ) -> None:
        self._custom, self._drain_seconds, self._channel = custom, drain_seconds, channel
        self._capacity, self._log_dropped = capacity, log_dropped
        self._poller: InProcessDomainEventPoller | None = None
        self._on_published, self._limits = on_published, limits
        self._seen, self._remembered = dict[object, None](), remembered
        self.routed = Counter[str]()
        """Number of published events, by delivery mode."""
        self.sent = self.dropped = 0
        """Numbers of events sent to subscribers of this process, and of events dropped because the channel was full."""

    @property
    def channel(self) -> InProcessChannel:
        """Return the channel in which events wait for the subscribers."""
        return self._channel

    @property
    def slowest(self) -> int:
        """Return the longest queue length of a subscriber."""
        return max((listener.waiting for listener in self._listeners), default=0)

    @property
    def lost(self) -> int:
        """Return the number of events dropped because a subscriber's queue was full."""
        return sum(listener.dropped for listener in self._listeners)

    @property
    def failures(self) -> int:
        """Return the number of events that a subscriber of this process missed: it raised, or a queue was full."""
        raised = SubscriberRegistry.instance().failed + sum(listener.failed for listener in self._listeners)
        return self.dropped + self.lost + raised

    @property
    def _listeners(self) -> Sequence[SubscriberThread]:
        return self._poller.listeners if self._poller is not None else ()

    def accepted(self, results: Iterable[Result]) -> None:
        """Publish the events of accepted results."""
        for result in results:
            for mode, announced in result.events.here if result.events else ():
                self._notify(result.claim, mode, announced)

    def close(self) -> None:
        """Deliver remaining events to the subscribers, for a limited time."""
        poller, self._poller = self._poller, None
        if poller is not None:
            poller.stop(self._drain_seconds)
            SubscriberRegistry.instance().stop_all()

    def _notify(self, claim: Claim, mode: str, announced: AnnouncedEvents) -> None:
        event = announced.event or {}
        if _log.isEnabledFor(logging.INFO):
            log_fields = {"event_name": event["event_name"], "event_id": event["event_id"], "delivery_mode": mode}
            log_line(_log, logging.INFO, "Domain event published successfully", ids_of(claim) | log_fields)
        if self._on_published is not None:
            namespace = event["metadata"]["namespace"]
            self._on_published(EventPublished(event["event_name"], namespace, mode, False, announced.took_ms))
        if announced.publisher is not None:
            self._custom.notify(announced.publisher, event)
        self.routed[mode] += 1
        if mode != "durable" and self._is_new(event["event_id"]):
            self._send(claim, dict(event))

    def _is_new(self, event_id: object) -> bool:
        """Return True when the event was not sent before, as far as that is remembered."""
        if event_id in self._seen:
            return False
        if len(self._seen) >= self._remembered:
            del self._seen[next(iter(self._seen))]
        self._seen[event_id] = None
        return True

    def _send(self, claim: Claim, event: dict[str, object]) -> None:
        self._begin()
        self._channel.capacity = self._capacity
        if self._channel.send(event):
            self.sent += 1
            return
        self.dropped += 1
        if self._log_dropped:
            log_fields = {name: event[name] for name in ("event_name", "event_id")} | {"dropped": self._channel.dropped}
            phrase = "Domain event dispatch failed - channel full (events dropped)"
            log_line(_log, logging.WARNING, phrase, ids_of(claim) | log_fields)

    def _begin(self) -> None:
        registry = SubscriberRegistry.instance()
        if self._poller is None and registry.list_registered() and not self._channel.pollers:
            self._poller = InProcessDomainEventPoller(channel=self._channel, limits=self._limits)
            self._poller.start()
        if self._poller is not None:
            registry.start_all(self._poller)
