"""Published domain events: as a list, as a stream, and the positions of their subscribers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated
from uuid import UUID

import orjson
from fastapi import Depends, Header, Path, Query, Request
from starlette.responses import Response

from tasker.errors import UsageError
from tasker.operations.permissions import Permission
from tasker.server.api.task_events import AGAIN_MS, MEDIA_TYPE, streamed
from tasker.server.auth.gate import namespaces_of, needs
from tasker.server.program import program_of
from tasker.server.rendering import Json
from tasker.server.routes import router
from tasker.server.shapes.domain_events import EventListResponse, ReplayEventsRequest
from tasker.server.shapes.problems import refusals
from tasker.server.shapes.texts import Moment
from tasker.server.streams import Streams
from tasker.template.names import MAX_POSITION
from tasker.views.events import EventFilter, PublishedEvent, RewindResult, SubscriberStatus

routes = router("events")
READS = needs(Permission.TASKS_LIST, confines=True)
PLACE = "The `id` of the last event that was read: the stream goes on behind it. Without one it begins with what comes."
Names = Annotated[
    list[str],
    Query(max_length=20, description="Repeatable: patterns of names, of which one fits; `*` stands for anything."),
]


def _which(
    name: Names = [],  # noqa: B006
    namespace: Annotated[str | None, Query(max_length=255)] = None,
    task: UUID | None = None,
    correlation_id: UUID | None = None,
    since: Moment | None = None,
) -> EventFilter:
    task_text, correlation = (str(value) if value else None for value in (task, correlation_id))
    return EventFilter(name, namespace, task_text, correlation, since)


Which = Annotated[EventFilter, Depends(_which)]


@routes.get(
    "/v1/events",
    response_model=EventListResponse,
    responses={
        200: {
            "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
            "description": "A page; or, where `text/event-stream` is accepted, a stream of `event`s.",
        },
        **refusals(),
    },
    **READS,
)
async def list_domain_events(
    request: Request,
    which: Which,
    after: Annotated[
        int | None, Query(ge=0, le=MAX_POSITION, description="Only what is behind this `position`.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    newest: Annotated[bool, Query(description="The last ones, not the first.")] = False,
    withheld: Annotated[bool, Query(description="Declared events that were not published, and why.")] = False,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
    last_event_id: Annotated[str | None, Header(max_length=20, description=PLACE)] = None,
) -> Response:
    """Return durable domain events by `position`, which preserves the order of each task's events.

    If a page has fewer events than `limit`, continue from `last`: no matching event will appear before it.
    """
    if MEDIA_TYPE in accept:
        return await _stream(request, which, _position(last_event_id) if last_event_id else after)
    events, where = program_of(request).domain_events, namespaces_of(request)
    if withheld:
        return Json({"events": await events.withheld(which, limit=limit, namespaces=where), "last": None})
    return Json(asdict(await events.page(which, after=after or 0, limit=limit, newest=newest, namespaces=where)))


@routes.get(
    "/v1/events/subscribers",
    response_model=list[SubscriberStatus],
    responses=refusals(),
    **needs(Permission.SYSTEM_ANALYTICS_READ),
)
async def list_event_subscribers(request: Request) -> Json:
    """Return the position of each subscriber."""
    return Json(await program_of(request).domain_events.subscribers())


@routes.post(
    "/v1/events/subscribers/{name}/replay",
    response_model=RewindResult,
    responses=refusals(),
    **needs(Permission.STEPS_RESOLVE, operates=True),
)
async def replay_events(
    request: Request, name: Annotated[str, Path(max_length=128)], body: ReplayEventsRequest
) -> Json:
    """Move a subscriber back to a position or a time, so that it reads the later events again."""
    return Json(await program_of(request).domain_events.replay(name, after=body.after, since=body.since))


def _position(text: str) -> int:
    if text.isdecimal() and (position := int(text)) <= MAX_POSITION:
        return position
    raise UsageError(f"{text!r:.60} is not a valid event id", hint="send the last received id unchanged")


async def _stream(request: Request, which: EventFilter, after: int | None) -> Response:
    async def follow(streams: Streams) -> AsyncIterator[bytes]:
        events = program_of(request).domain_events.follow(which, after=after, namespaces=namespaces_of(request))
        return _written(streams.through(events))

    return await streamed(request, follow)


async def _written(events: AsyncIterator[PublishedEvent | None]) -> AsyncIterator[bytes]:
    yield f"retry: {AGAIN_MS}\n\n".encode()
    async for event in events:
        if event is None:
            yield b": nothing new\n\n"
        else:
            yield f"event: event\nid: {event.position}\ndata: {orjson.dumps(asdict(event)).decode()}\n\n".encode()
