"""User-defined event publishers: called in a thread, for a limited time, and unable to fail a step."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tasker.dataclasses import dataclass
from tasker.handlers.events.publisher import BasePublisher, StepEventContext

LEFT_OUT = "left it out"
"""Ending of the reason when a publisher withholds an event on purpose, which is no failure."""
MOST_STUCK = 4
"""Number of hanging calls at which a publisher is no longer called."""
_log = logging.getLogger("tasker.domain_events")


@dataclass(frozen=True, slots=True)
class PublisherAnswer:
    """The payload and metadata that a publisher returned, or the reason why the event is not published."""

    payload: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None
    withheld: str | None = None


class CustomPublishers:
    """Caller of user-defined publishers. `limit` is the time limit of one call in seconds."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._stuck: Counter[str] = Counter()

    async def ask(self, publisher: BasePublisher, context: StepEventContext, event: str) -> PublisherAnswer:
        """Ask the publisher for the event of a step's outcome. Never raises; a call past its limit is abandoned."""
        name = publisher.publisher_name
        if self._stuck[name] >= MOST_STUCK:
            return PublisherAnswer(withheld=f"{name} is not called: {MOST_STUCK} calls of it have not ended")
        asked: asyncio.Future[PublisherAnswer] = asyncio.get_running_loop().create_future()
        threading.Thread(target=self._call, args=(publisher, context, event, asked), daemon=True).start()
        try:
            return await asyncio.wait_for(asyncio.shield(asked), self._limit)
        except TimeoutError:
            self._stuck[name] += 1
            asked.add_done_callback(lambda _: self._stuck.subtract([name]))
            return PublisherAnswer(withheld=f"{name} did not answer within {self._limit:g} seconds")

    def notify(self, publisher: BasePublisher, event: Mapping[str, Any]) -> None:
        """Notify a publisher in the background that its event was accepted."""
        if self._stuck[publisher.publisher_name] < MOST_STUCK:
            threading.Thread(target=_call_publisher, args=(publisher, event), daemon=True).start()

    def _call(
        self, publisher: BasePublisher, context: StepEventContext, event: str, asked: asyncio.Future[PublisherAnswer]
    ) -> None:
        answer = _said(publisher, context, event)
        loop = asked.get_loop()
        if not loop.is_closed():
            loop.call_soon_threadsafe(asked.set_result, answer)


def _said(publisher: BasePublisher, context: StepEventContext, event: str) -> PublisherAnswer:
    payload: dict[str, Any] = {}
    try:
        if not publisher.should_publish(context):
            return PublisherAnswer(withheld=f"{publisher.publisher_name} {LEFT_OUT}")
        payload = publisher.transform_payload(context)
        metadata = {**context.metadata, **publisher.additional_metadata(context)}
        if not publisher.before_publish(event, payload, metadata):
            return PublisherAnswer(withheld=f"{publisher.publisher_name} {LEFT_OUT}")
    except BaseException as error:  # SystemExit too: the step must not be lost because of a publisher
        return PublisherAnswer(withheld=_failed(publisher, event, error, payload))
    return PublisherAnswer(payload, metadata)


def _failed(publisher: BasePublisher, event: str, error: BaseException, payload: dict[str, Any]) -> str:
    try:
        publisher.on_publish_error(event, error if isinstance(error, Exception) else RuntimeError(repr(error)), payload)
    except BaseException:
        _log.exception("on_publish_error of %s failed", publisher.publisher_name)
    return f"{publisher.publisher_name} raised {type(error).__name__}: {str(error)[:500]}"


def _call_publisher(publisher: BasePublisher, event: Mapping[str, Any]) -> None:
    name, payload, metadata = event["event_name"], dict(event["payload"]), dict(event["metadata"])
    try:
        publisher.after_publish(name, payload, metadata)
    except Exception:
        _log.exception("after_publish of %s failed", publisher.publisher_name)
