"""Sources of notifications: NOTIFY, and the push of backends whose messages are not in the database."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial

from tasker.db.connection import Statements
from tasker.db.listening import Notification, listen
from tasker.db.pace import outage_of
from tasker.messaging.listening_modes import EventSettings
from tasker.messaging.queues import ready_channel
from tasker.messaging.service import MessagingService
from tasker.process.listener import Source

NOTIFICATIONS = "notifications of the database"
"""Name of the source of database notifications."""
PAUSES_CHANNEL = "tasker_queues"
"""NOTIFY channel for orchestration queues that were paused or resumed."""
TIMERS_CHANNEL = "tasker_timers"
"""NOTIFY channel for steps that are due soon, and for the end of a timekeeper."""
ORCHESTRATOR_CHANNELS = (ready_channel("orchestration"), PAUSES_CHANNEL, TIMERS_CHANNEL)
WORKER_CHANNELS = ("tasker_work", "tasker_cancelled", *ORCHESTRATOR_CHANNELS)


class Lag:
    """Latency of the last test notification in seconds; None before the first."""

    seconds: float | None = None

    def took(self, seconds: float) -> None:
        self.seconds = seconds


def notifications(
    messaging: MessagingService,
    connection: Statements,
    url: str,
    channels: Sequence[str],
    on_notification: Callable[[Notification], None],
) -> Source:
    """Return the source of NOTIFY on these channels; `connection` sends test notifications.

    It brings work of ordered namespaces, which have no queue, whatever the backend.
    """

    lag = Lag()

    async def prove(channel: str) -> None:
        await connection.execute("select pg_notify(%s, '')", (channel,))

    def news(settings: EventSettings) -> AsyncGenerator[Notification | None, None]:
        return listen(
            settings.listen_url or url,
            channels,
            prove,
            proof_seconds=settings.listener.connection_timeout_seconds,
            check_seconds=settings.listener.event_timeout_seconds,
            on_proof=lag.took,
        )

    return Source(
        NOTIFICATIONS,
        news,
        on_notification,
        away=lambda: outage_of(url).is_on,
        lag=lambda: lag.seconds,
    )


def step_news(messaging: MessagingService, namespaces: Sequence[str], wake: Callable[[], None]) -> list[Source]:
    """Return the push sources of step messages of these namespaces; none where NOTIFY wakes the workers."""
    if not _pushes(messaging):
        return []
    return [_pushed(messaging, name, partial(messaging.step_news, name), wake) for name in namespaces]


def result_news(messaging: MessagingService, wake: Callable[[], None]) -> list[Source]:
    """Return the push source of parked results; none where NOTIFY announces them."""
    if not _pushes(messaging):
        return []
    return [_pushed(messaging, "parked results", partial(messaging.news, messaging.names.step_results), wake)]


def orchestration_news(messaging: MessagingService, wake: Callable[[], None]) -> list[Source]:
    """Return the push sources of the three orchestration queues; none where NOTIFY announces them."""
    if not _pushes(messaging):
        return []
    return [
        _pushed(messaging, queue, partial(messaging.news, queue), wake) for queue in messaging.names.orchestration()
    ]


def _pushes(messaging: MessagingService) -> bool:
    return messaging.capabilities.push and not messaging.capabilities.transactional


def _pushed(
    messaging: MessagingService, name: str, news: Callable[[], AsyncGenerator[None, None]], wake: Callable[[], None]
) -> Source:
    async def announced(settings: EventSettings) -> AsyncGenerator[bool, None]:
        async with aclosing(news()) as items:
            async for _ in items:
                yield True

    return Source(f"messages of {name}", announced, lambda _: wake(), away=messaging.is_away)
