"""State of endpoints and operator actions on them: one interface, for the local database or through a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from tasker.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.services.event_subscriptions import Delivery
from tasker_webhooks.sending import SUBSCRIBER, posted_test
from tasker_webhooks.table import CALLBACKS, Endpoint, WebhooksTable

if TYPE_CHECKING:
    from tasker.services.domain_events import DomainEventLog
    from tasker.views.events import SubscriberStatus

ASIDE = 200
"""Maximum number of listed events that an endpoint has not accepted."""


@dataclass(frozen=True)
class EndpointStatus:
    """Endpoint with its progress. `state`: `on`, `off` by its settings, `stopped` with the reason, or `new`."""

    name: str
    url: str
    events: Sequence[str]
    state: str
    reason: str
    behind: int
    waiting: int
    given_up: int


@dataclass(frozen=True)
class Tested:
    """Outcome of a test event; `error` is empty if it was accepted."""

    endpoint: str
    taken: bool
    error: str


@dataclass(frozen=True)
class Replayed:
    """Number of events that are posted again."""

    endpoint: str
    events: int


@dataclass(frozen=True)
class Switched:
    """Outcome of enabling or disabling an endpoint; not `changed` if it was in that state already."""

    endpoint: str
    changed: bool


class Endpoints(Protocol):
    """The endpoints of a fleet."""

    async def list(self) -> Sequence[EndpointStatus]: ...
    async def aside(self, name: str) -> Sequence[Delivery]: ...
    async def test(self, name: str) -> Tested: ...
    async def replay(self, name: str, events: Sequence[str]) -> Replayed: ...
    async def disable(self, name: str, *, actor: str, reason: str) -> Switched: ...
    async def enable(self, name: str, *, actor: str) -> Switched: ...


class EndpointsHere:
    """Endpoints of the local settings. All methods but `list` raise `UsageError` for an unknown endpoint."""

    def __init__(self, settings: WebhooksTable, events: DomainEventLog) -> None:
        self._settings, self._events = settings, events

    async def list(self) -> Sequence[EndpointStatus]:
        """Return every endpoint with its progress."""
        subscribers = {subscriber.name: subscriber for subscriber in await self._events.subscribers()}
        return [
            _described(endpoint, subscribers.get(SUBSCRIBER + endpoint.name)) for endpoint in self._settings.every()
        ]

    async def aside(self, name: str) -> Sequence[Delivery]:
        """Return the events that it has not accepted, the last tried first."""
        return await self._events.deliveries.list(self._subscriber(name), limit=ASIDE)

    async def test(self, name: str) -> Tested:
        """Post an event named `tasker.webhook.test` from this process."""
        return await tested(self._settings, name)

    async def replay(self, name: str, events: Sequence[str]) -> Replayed:
        """Post events again that were given up: these, or all."""
        return Replayed(name, await self._events.deliveries.retry(self._subscriber(name), events or None))

    async def disable(self, name: str, *, actor: str, reason: str) -> Switched:
        """Stop sending to an endpoint."""
        return Switched(name, await self._events.deliveries.stop(self._subscriber(name), actor=actor, reason=reason))

    async def enable(self, name: str, *, actor: str) -> Switched:
        """Resume sending to an endpoint."""
        return Switched(name, await self._events.deliveries.resume(self._subscriber(name), actor=actor))

    def _subscriber(self, name: str) -> str:
        return SUBSCRIBER + _named(self._settings, name).name


async def tested(settings: WebhooksTable, name: str) -> Tested:
    """Post a test event as `EndpointsHere.test` does, without a database."""
    endpoint = _named(settings, name)
    if endpoint.name == CALLBACKS:
        raise UsageError(f"{CALLBACKS} has no URL of its own", hint="submit a task with a callback_url")
    error = await posted_test(endpoint, settings)
    return Tested(name, not error, error)


def _named(settings: WebhooksTable, name: str) -> Endpoint:
    known = {endpoint.name: endpoint for endpoint in settings.every()}
    if match := known.get(name):
        return match
    hint = f"there are {', '.join(known)}" if known else "none is configured under plugins.webhooks.endpoints"
    raise UsageError(f"there is no endpoint {name!r:.80}", hint=hint)


def _described(endpoint: Endpoint, subscriber: SubscriberStatus | None) -> EndpointStatus:
    stopped = subscriber.stopped if subscriber else None
    state = "off" if not endpoint.enabled else "stopped" if stopped else "on" if subscriber else "new"
    reason = f"{stopped['by']}: {stopped['reason']}" if stopped else ""
    counts = (subscriber.behind, subscriber.waiting, subscriber.given_up) if subscriber else (0, 0, 0)
    return EndpointStatus(endpoint.name, endpoint.url.partition("?")[0], endpoint.events, state, reason, *counts)
