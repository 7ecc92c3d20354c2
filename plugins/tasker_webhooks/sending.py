"""How the events of one endpoint are sent: each once it comes, and again while that fails."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tasker.contracts.backoff import BackoffPolicy
from tasker.errors import TaskerError
from tasker_webhooks.posting import Answer, Poster
from tasker_webhooks.signing import body_of, headers
from tasker_webhooks.table import Endpoint, WebhooksTable
from tasker_webhooks.turns import Breaker, Turns

if TYPE_CHECKING:
    from tasker.services.domain_events.deliveries import DueDelivery
    from tasker.services.domain_events.log import DomainEventLog
    from tasker.services.domain_events.values import PublishedEvent

SUBSCRIBER = "webhook:"
"""Before the name of an endpoint: the subscriber that it is."""
LOOK_SECONDS = 5.0
"""After so long an endpoint that waits for nothing is asked whether somebody has replayed something."""
STANDBY_SECONDS = 15.0
MARGIN_SECONDS = 1.0
"""So much earlier than its process a new endpoint begins: the database measures the span when the call arrives."""
AHEAD = 200
"""Events that are posted, or wait, before the oldest one is dealt with, at most: so many a crash may repeat."""
RETRIES = 100
"""Events that are tried again at the same time, or wait for their turn, at most."""
BUSY_SECONDS = 0.5
"""After so long it is looked for more to try again while all that is due is under way."""
CONNECTIONS = 3
"""Of one process to the database, however many endpoints there are: statements are short, and wait for each other."""
JOINING = BackoffPolicy(1.0, 60.0, spread=0.2)
_log = logging.getLogger("tasker.webhooks")


class Sender:
    """One endpoint, of which one process of a fleet is in charge at a time: who holds the lease of its subscriber.

    An event counts as dealt with once it was taken, or stands in the database to be tried again. What is killed between
    the two sends it once more: receivers know it by its `webhook-id`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        settings: WebhooksTable,
        events: DomainEventLog,
        poster: Poster,
        breaker: Breaker | None = None,
        process_started: float | None = None,
    ) -> None:
        self._endpoint, self._settings, self._events, self._poster = endpoint, settings, events, poster
        self._name, self._holder = SUBSCRIBER + endpoint.name, str(uuid4())
        self._process_started = time.monotonic() if process_started is None else process_started
        self._breaker, self._turns = breaker or Breaker(), Turns(endpoint.at_once)
        self._gone, self._stopped = asyncio.Event(), asyncio.Event()
        self._again = BackoffPolicy(settings.first_retry_seconds, settings.longest_retry_seconds, spread=0.1)

    async def run(self) -> None:
        """Send until it is cancelled.

        Outages of the database, and a lease that another process took, are waited out. Any other error is logged and
        the sender restarted: other endpoints never notice.
        """
        failures = 0
        while True:
            self._gone.clear()
            self._stopped.clear()
            started = time.monotonic()
            try:
                async with asyncio.TaskGroup() as parts:
                    for part in (self._send_new, self._send_again, self._end_when_gone):
                        parts.create_task(part())
            except* TaskerError as lost:
                _log.info("webhook_waits endpoint=%s reason=%s", self._endpoint.name, _first(lost))
            except* Exception as defects:
                logged = "webhook_sender_failed endpoint=%s error=%r; it is restarted"
                _log.exception(logged, self._endpoint.name, _first(defects))
            if time.monotonic() - started > JOINING.longest:
                failures = 0
            await asyncio.sleep(JOINING.pause(failures, random.random()))
            failures += 1

    async def _send_new(self) -> None:
        from tasker.services.domain_events.values import EventFilter

        which = EventFilter(names=self._endpoint.events, namespace=self._endpoint.namespace or None)
        subscription = self._events.subscribe(
            self._name,
            which,
            holder=self._holder,
            from_now=True,
            seconds_ago=time.monotonic() - self._process_started + MARGIN_SECONDS,
            standby_seconds=STANDBY_SECONDS,
        )
        await subscription.deal(lambda event: self._send(event, 0), AHEAD)

    async def _send_again(self) -> None:
        under_way = set[str]()
        async with asyncio.TaskGroup() as group:
            while True:
                known = frozenset(under_way)  # before it is read what is due: those that end meanwhile are in both
                due = await self._events.deliveries.due(self._name, self._holder, RETRIES)
                found = [(event, attempts) for event, attempts in due.events if event.event_id not in known]
                for event, attempts in found:
                    under_way.add(event.event_id)
                    group.create_task(self._try_again(event, attempts, under_way))
                await asyncio.sleep(_until_next(due, bool(found)))

    async def _try_again(self, event: PublishedEvent, attempts: int, under_way: set[str]) -> None:
        if await self._send(event, attempts):
            await self._events.deliveries.settle(self._name, self._holder, event.event_id)
        under_way.discard(event.event_id)

    async def _send(self, event: PublishedEvent, attempts: int) -> bool:
        """Whether it was taken; what was not is put aside."""
        one_by_one = event.metadata["task_uuid"] if self._endpoint.at_once > 1 else ""
        async with self._turns.turn(one_by_one):
            answer = await self._posted(event)
            if answer.error:
                await self._put_aside(event, attempts + 1, answer)
        return not answer.error

    async def _posted(self, event: PublishedEvent) -> Answer:
        body = body_of(event)
        async with self._breaker.turn():
            if self._gone.is_set():
                await asyncio.Event().wait()  # until all this is cancelled
            signed = headers(event.event_id, int(time.time()), body, self._endpoint.secrets)
            answer = await self._poster.post(self._endpoint.url, body, signed)
            self._tell(answer)
        if answer.gone:
            self._gone.set()
        return answer

    async def _end_when_gone(self) -> None:
        """Once that is kept, what is under way may end. It begins again when somebody has it sent to."""
        await self._stopped.wait()
        await asyncio.sleep(LOOK_SECONDS)
        raise TaskerError("the endpoint wants nothing any more", hint=f"tasker webhook enable {self._endpoint.name}")

    def _tell(self, answer: Answer) -> None:
        if not answer.error:
            self._breaker.succeeded()
        elif answer.retry and self._breaker.failed():
            told = "webhook_rests endpoint=%s error=%s; it is tried again in a while"
            _log.warning(told, self._endpoint.name, answer.error)

    async def _put_aside(self, event: PublishedEvent, attempts: int, answer: Answer) -> None:
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
            self._stopped.set()

    def _pause(self, attempts: int, answer: Answer) -> float:
        wanted = max(self._again.pause(attempts - 1, random.random()), answer.after or 0.0)
        return min(wanted, self._settings.longest_retry_seconds)


def _until_next(due: DueDelivery, found: bool) -> float:
    if due.next_seconds is None:
        return LOOK_SECONDS
    if due.events:
        return 0.0 if found else BUSY_SECONDS
    return min(LOOK_SECONDS, max(due.next_seconds, 0.05))


def _first(lost: BaseExceptionGroup[Any]) -> BaseException:
    """What is told of a group, which may hold others."""
    return _first(found) if isinstance(found := lost.exceptions[0], BaseExceptionGroup) else found


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


async def send_all(database_url: str, settings: WebhooksTable, process_started: float | None = None) -> None:
    """Send the events of every endpoint until it is cancelled.

    A new endpoint begins with the events since `process_started`, a time of the monotonic clock; None: since now.
    """
    import tasker

    poster = Poster(settings)
    app = tasker.App(database_url, work=False, max_connections=CONNECTIONS)
    async with app, asyncio.TaskGroup() as senders:
        for endpoint in settings.endpoints:
            if endpoint.enabled:
                sender = Sender(endpoint, settings, app.domain_events, poster, process_started=process_started)
                senders.create_task(sender.run())
