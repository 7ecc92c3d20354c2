"""Sender of the events of one endpoint: each is posted when it comes, and retried while that fails."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tasker.clock import BackoffPolicy
from tasker.errors import TaskerError
from tasker_webhooks.posting import Answer, Poster
from tasker_webhooks.signing import body_of, headers
from tasker_webhooks.table import CALLBACKS, Endpoint, WebhooksTable
from tasker_webhooks.turns import Breaker, Turns

if TYPE_CHECKING:
    from tasker.services.domain_events import DomainEventLog
    from tasker.services.event_subscriptions import DueDelivery
    from tasker.views.events import PublishedEvent

SUBSCRIBER = "webhook:"
"""Prefix of an endpoint's name, for the name of its subscriber."""
POLL_SECONDS = 5.0
"""Interval at which an endpoint without waiting events is checked for replayed ones."""
STANDBY_SECONDS = 15.0
MARGIN_SECONDS = 1.0
"""Time by which a new endpoint begins before its process, because the database measures the span when the call arrives.
"""
AHEAD = 200
"""Maximum number of events that are posted, or wait, before the oldest one is processed: a crash may repeat them."""
RETRIES = 100
"""Maximum number of events that are retried at the same time, or wait for their turn."""
BUSY_SECONDS = 0.5
"""Interval of checks for more retries while all due ones are in progress."""
CONNECTIONS = 3
"""Database connections of a process, for any number of endpoints: statements are short, and wait for each other.
"""
JOINING = BackoffPolicy(1.0, 60.0, spread=0.2)
_log = logging.getLogger("tasker.webhooks")


class Sender:
    """Sender of one endpoint, run by one process of a fleet at a time: the holder of its subscriber's lease.

    An event counts as processed once it was accepted, or is stored in the database for a retry. After a crash between
    the two it is sent again: receivers recognize it by its `webhook-id`.
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
        """Send until cancelled.

        Waits while the database is down or another process has the lease. Any other error is logged and the sender
        restarted; other endpoints are not affected.
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
        from tasker.views.events import EventFilter

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
                known = frozenset(under_way)  # before due events are read: those that end meanwhile are in both
                due = await self._events.deliveries.due(self._name, self._holder, RETRIES)
                pending = [(event, attempts) for event, attempts in due.events if event.event_id not in known]
                for event, attempts in pending:
                    under_way.add(event.event_id)
                    group.create_task(self._try_again(event, attempts, under_way))
                await asyncio.sleep(_until_next(due, bool(pending)))

    async def _try_again(self, event: PublishedEvent, attempts: int, under_way: set[str]) -> None:
        if await self._send(event, attempts):
            await self._events.deliveries.settle(self._name, self._holder, event.event_id)
        under_way.discard(event.event_id)

    async def _send(self, event: PublishedEvent, attempts: int) -> bool:
        """Return True if the event was accepted; otherwise it is stored for a retry."""
        one_by_one = event.metadata["task_uuid"] if self._endpoint.at_once > 1 else ""
        async with self._turns.turn(one_by_one):
            answer = await self._posted(event)
            if answer.error:
                await self._record_failure(event, attempts + 1, answer)
        return not answer.error

    async def _posted(self, event: PublishedEvent) -> Answer:
        body = body_of(event)
        async with self._breaker.turn():
            if self._gone.is_set():
                await asyncio.Event().wait()  # until all tasks are cancelled
            signed = headers(event.event_id, int(time.time()), body, self._endpoint.secrets)
            answer = await self._poster.post(self._endpoint.url, body, signed)
            self._report_to_breaker(answer)
        if answer.gone:
            self._gone.set()
        return answer

    async def _end_when_gone(self) -> None:
        """Raise an error after the stop is stored, so that running tasks may end; an operator enables the endpoint
        again."""
        await self._stopped.wait()
        await asyncio.sleep(POLL_SECONDS)
        raise TaskerError("the endpoint wants nothing any more", hint=f"tasker webhook enable {self._endpoint.name}")

    def _report_to_breaker(self, answer: Answer) -> None:
        if not answer.error:
            self._breaker.succeeded()
        elif answer.retry and self._breaker.failed():
            message = "webhook_rests endpoint=%s error=%s; it is tried again in a while"
            _log.warning(message, self._endpoint.name, answer.error)

    async def _record_failure(self, event: PublishedEvent, attempts: int, answer: Answer) -> None:
        deliveries = self._events.deliveries
        over = answer.gone or not answer.retry or attempts >= self._settings.attempts
        await deliveries.put_aside(
            self._name, self._holder, event, answer.error, None if over else self._pause(attempts, answer)
        )
        if over:
            message = "webhook_given_up endpoint=%s event=%s attempts=%s error=%s; see tasker webhook list %s"
            _log.error(message, self._endpoint.name, event.event_id, attempts, answer.error, self._endpoint.name)
        if answer.gone:
            await deliveries.stop(self._name, actor="tasker", reason=answer.error)
            self._stopped.set()

    def _pause(self, attempts: int, answer: Answer) -> float:
        delay = max(self._again.pause(attempts - 1, random.random()), answer.after or 0.0)
        return min(delay, self._settings.longest_retry_seconds)


class CallbackSender(Sender):
    """Sender of the ends of tasks to the `callback_url` of each task.

    The URLs have nothing in common, so none of them rests or stops the others.
    """

    def __init__(
        self, settings: WebhooksTable, events: DomainEventLog, poster: Poster, process_started: float | None = None
    ) -> None:
        endpoint = next(each for each in settings.every() if each.name == CALLBACKS)
        super().__init__(endpoint, settings, events, poster, process_started=process_started)

    async def _posted(self, event: PublishedEvent) -> Answer:
        url = await self._events.callback_url(event.metadata["task_uuid"])
        if url is None:  # the event was written for other readers
            return Answer()
        body = body_of(event)
        signed = headers(event.event_id, int(time.time()), body, self._endpoint.secrets)
        answer = await self._poster.post(url, body, signed)
        return replace(answer, gone=False, retry=False) if answer.gone else answer


def _until_next(due: DueDelivery, delivered: bool) -> float:
    if due.next_seconds is None:
        return POLL_SECONDS
    if due.events:
        return 0.0 if delivered else BUSY_SECONDS
    return min(POLL_SECONDS, max(due.next_seconds, 0.05))


def _first(lost: BaseExceptionGroup[Any]) -> BaseException:
    """Return the error to log for a group, which may contain other groups."""
    return _first(error) if isinstance(error := lost.exceptions[0], BaseExceptionGroup) else error


async def posted_test(endpoint: Endpoint, settings: WebhooksTable) -> str:
    """Post an event named `tasker.webhook.test`; return the reason if it was not accepted, else an empty text."""
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
    """Send the events of every endpoint until cancelled.

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
        if settings.callback_secrets:
            callbacks = CallbackSender(settings, app.domain_events, poster, process_started)
            senders.create_task(callbacks.run())
