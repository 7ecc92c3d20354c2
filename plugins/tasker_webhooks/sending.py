"""How the events of one endpoint are sent: each once it comes, and again while that fails."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections.abc import Callable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tasker.contracts.backoff import Backoff
from tasker.errors import TaskerError
from tasker_webhooks.posting import Answer, Poster
from tasker_webhooks.signing import body_of, headers
from tasker_webhooks.table import Endpoint, WebhooksTable

if TYPE_CHECKING:
    from tasker.services.domain_events.log import DomainEvents

SUBSCRIBER = "webhook:"
"""Before the name of an endpoint: the subscriber that it is."""
LOOK_SECONDS = 5.0
"""After so long an endpoint that waits for nothing is asked whether somebody has replayed something."""
STANDBY_SECONDS = 15.0
AT_ONCE = 20
JOINING = Backoff(1.0, 60.0, spread=0.2)
_log = logging.getLogger("tasker.webhooks")


class Breaker:
    """Lets an endpoint that fails again and again rest: one request after each rest, until one is taken."""

    failures_in_a_row = 5
    rest = Backoff(30.0, 600.0, spread=0.2)

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures, self._open_until = 0, 0.0

    @property
    def seconds(self) -> float:
        """How long nothing is to be sent."""
        return max(0.0, self._open_until - self._clock())

    def succeeded(self) -> None:
        """A request was taken."""
        self._failures, self._open_until = 0, 0.0

    def failed(self) -> bool:
        """A request was not taken. True when that opened it."""
        self._failures += 1
        beyond = self._failures - self.failures_in_a_row
        if beyond >= 0:
            self._open_until = self._clock() + self.rest.pause(beyond, random.random())
        return beyond == 0


class Sender:
    """One endpoint, of which one process of a fleet is in charge at a time: who holds the lease of its subscriber.

    An event counts as dealt with once it was taken, or stands in the database to be tried again. What is killed between
    the two sends it once more: receivers know it by its `webhook-id`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        settings: WebhooksTable,
        events: DomainEvents,
        poster: Poster,
        breaker: Breaker | None = None,
    ) -> None:
        self._endpoint, self._settings, self._events, self._poster = endpoint, settings, events, poster
        self._name, self._holder = SUBSCRIBER + endpoint.name, str(uuid4())
        self._breaker, self._one_at_a_time = breaker or Breaker(), asyncio.Lock()
        self._again = Backoff(settings.first_retry_seconds, settings.longest_retry_seconds, spread=0.1)

    async def run(self) -> None:
        """Send until it is cancelled. Outages of the database, and a lease that somebody else took, are waited out."""
        failures = 0
        while True:
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._send_new())
                    both.create_task(self._send_again())
            except* TaskerError as lost:
                _log.info("webhook_waits endpoint=%s reason=%s", self._endpoint.name, lost.exceptions[0])
            await asyncio.sleep(JOINING.pause(failures, random.random()))
            failures += 1

    async def _send_new(self) -> None:
        from tasker.services.domain_events.values import EventFilter

        which = EventFilter(names=self._endpoint.events, namespace=self._endpoint.namespace or None)
        options: dict[str, Any] = {"holder": self._holder, "from_now": True, "standby_seconds": STANDBY_SECONDS}
        async with aclosing(self._events.subscribe(self._name, which, **options).events()) as found:
            async for event in found:
                await self._send(event, 0)

    async def _send_again(self) -> None:
        while True:
            due = await self._events.deliveries.due(self._name, self._holder, AT_ONCE)
            for event, attempts in due.events:
                if await self._send(event, attempts):
                    await self._events.deliveries.settle(self._name, self._holder, event.event_id)
            wait = LOOK_SECONDS if due.next_seconds is None else min(LOOK_SECONDS, due.next_seconds)
            await asyncio.sleep(0 if due.events else max(wait, 0.05))

    async def _send(self, event: Any, attempts: int) -> bool:
        """Whether it was taken; what was not is put aside."""
        body = body_of(event)
        async with self._one_at_a_time:
            while self._breaker.seconds:
                await asyncio.sleep(self._breaker.seconds)
            signed = headers(event.event_id, int(time.time()), body, self._endpoint.secrets)
            answer = await self._poster.post(self._endpoint.url, body, signed)
            self._tell(answer)
        if answer.error:
            await self._put_aside(event, attempts + 1, answer)
        return not answer.error

    def _tell(self, answer: Answer) -> None:
        if not answer.error:
            self._breaker.succeeded()
        elif answer.retry and self._breaker.failed():
            told = "webhook_rests endpoint=%s error=%s; it is tried again in a while"
            _log.warning(told, self._endpoint.name, answer.error)

    async def _put_aside(self, event: Any, attempts: int, answer: Answer) -> None:
        deliveries = self._events.deliveries
        over = answer.gone or not answer.retry or attempts >= self._settings.attempts
        await deliveries.put_aside(
            self._name, self._holder, event, answer.error, None if over else self._pause(attempts, answer)
        )
        if over:
            told = "webhook_given_up endpoint=%s event=%s attempts=%s error=%s; see tasker webhook list %s"
            _log.error(told, self._endpoint.name, event.event_id, attempts, answer.error, self._endpoint.name)
        if answer.gone:
            await deliveries.stop(self._name, by="tasker", reason=answer.error)

    def _pause(self, attempts: int, answer: Answer) -> float:
        wanted = max(self._again.pause(attempts - 1, random.random()), answer.after or 0.0)
        return min(wanted, self._settings.longest_retry_seconds)


async def posted_test(endpoint: Endpoint, settings: WebhooksTable) -> str:
    """Post an event of the name `tasker.webhook.test`. Why it was not taken; empty where it was."""
    identity, now = str(uuid4()), datetime.now(UTC)
    event = {
        "specversion": "1.0",
        "id": identity,
        "source": "/tasker",
        "type": "tasker.webhook.test",
        "time": now.isoformat(),
        "data": {},
    }
    body = json.dumps(event).encode()
    signed = headers(identity, int(now.timestamp()), body, endpoint.secrets)
    return (await Poster(settings).post(endpoint.url, body, signed)).error


async def send_all(database_url: str, settings: WebhooksTable) -> None:
    """Send the events of every endpoint until it is cancelled."""
    import tasker

    poster = Poster(settings)
    async with tasker.App(database_url, work=False) as app:
        senders = [Sender(each, settings, app.domain_events, poster) for each in settings.endpoints if each.enabled]
        await asyncio.gather(*(each.run() for each in senders))
