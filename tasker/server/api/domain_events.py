"""Published domain events: as a list, as a stream, and the positions of their subscribers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

import orjson
from fastapi import Header, Request
from starlette.responses import Response

from tasker.errors import UsageError
from tasker.operations.events import EventOperations
from tasker.server.api.task_events import AGAIN_MS, MEDIA_TYPE, streamed
from tasker.server.auth.gate import actor_of, namespaces_of, require_namespace
from tasker.server.operation_routes import serves
from tasker.server.program import program_of
from tasker.server.routes import router
from tasker.server.streams import Streams
from tasker.template.names import MAX_POSITION
from tasker.views.events import EventFilter, EventList, PublishedEvent, RewindResult, SubscriberStatus
from tasker.views.incoming_events import IncomingEvent, SentEvent

routes = router("events")
PLACE = "The `id` of the last event that was read: the stream goes on behind it. Without one it begins with what comes."
KEEP_ALIVE_SECONDS = 15.0
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
        "description": "A page; or, where `text/event-stream` is accepted, a stream of `event`s.",
    },
}


@serves(
    routes,
    EventOperations.list_events,
    STREAM,
    accept=Annotated[str | None, Header(include_in_schema=False)],
    last_event_id=Annotated[str | None, Header(max_length=20, description=PLACE)],
)
async def list_domain_events(
    request: Request,
    names: Sequence[str],
    namespace: str | None,
    task: str | None,
    correlation_id: str | None,
    since: datetime | None,
    after: int | None,
    limit: int,
    newest: bool,
    withheld: bool,
    accept: str | None,
    last_event_id: str | None,
) -> EventList | Response:
    which = EventFilter(names, namespace, task, correlation_id, since)
    if MEDIA_TYPE in (accept or ""):
        return await _stream(request, which, _position(last_event_id) if last_event_id else after)
    events, where = program_of(request).domain_events, namespaces_of(request)
    if withheld:
        return EventList(await events.withheld(which, limit=limit, namespaces=where), None)
    page = await events.page(which, after=after, limit=limit, newest=newest, namespaces=where)
    return EventList(page.events, page.last)


@serves(routes, EventOperations.send_event)
async def send_event(request: Request, namespace: str, name: str, payload: Any, **options: Any) -> SentEvent:
    require_namespace(request, namespace)
    return await program_of(request).incoming_events.send(
        namespace, name, payload, by=actor_of(request, None), **options
    )


@serves(routes, EventOperations.list_incoming_events)
async def list_incoming_events(
    request: Request, namespace: str | None, name: str | None, key: str | None, limit: int
) -> Sequence[IncomingEvent]:
    events, where = program_of(request).incoming_events, namespaces_of(request)
    return await events.list(namespace=namespace, name=name, key=key, limit=limit, namespaces=where)


@serves(routes, EventOperations.list_event_subscribers)
async def list_event_subscribers(request: Request) -> Sequence[SubscriberStatus]:
    return await program_of(request).domain_events.subscribers()


@serves(routes, EventOperations.replay_events)
async def replay_events(request: Request, name: str, after: int | None, since: datetime | None) -> RewindResult:
    return await program_of(request).domain_events.replay(name, after=after, since=since)


def _position(text: str) -> int:
    if text.isdecimal() and (position := int(text)) <= MAX_POSITION:
        return position
    raise UsageError(f"{text!r:.60} is not a valid event id", hint="send the last received id unchanged")


async def _stream(request: Request, which: EventFilter, after: int | None) -> Response:
    async def follow(streams: Streams) -> AsyncIterator[bytes]:
        options: dict[str, Any] = {"after": after, "quiet_seconds": KEEP_ALIVE_SECONDS}
        events = program_of(request).domain_events.follow(which, **options, namespaces=namespaces_of(request))
        return _written(streams.through(events))

    return await streamed(request, follow)


async def _written(events: AsyncIterator[PublishedEvent | None]) -> AsyncIterator[bytes]:
    yield f"retry: {AGAIN_MS}\n\n".encode()
    async for event in events:
        if event is None:
            yield b": nothing new\n\n"
        else:
            yield f"event: event\nid: {event.position}\ndata: {orjson.dumps(asdict(event)).decode()}\n\n".encode()
