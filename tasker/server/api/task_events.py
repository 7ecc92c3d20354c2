"""Events of a task as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from typing import Annotated, Any

import orjson
from fastapi import Header, Query, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tasker.operations.permissions import Permission
from tasker.server.api.tasks import TaskUuid
from tasker.server.auth.gate import needs
from tasker.server.errors import answer, problem
from tasker.server.program import program_of
from tasker.server.routes import router
from tasker.server.shapes.problems import refusals
from tasker.server.streams import Streams
from tasker.services.tasks.history import TaskEvent

routes = router("tasks")
MEDIA_TYPE = "text/event-stream"
KINDS = "Events of the kinds `transition`, `progress` and `end`."
AGAIN_MS = 1000
"""Delay after which a disconnected client reconnects."""
FULL_SECONDS = 5
PLACE = "The `id` of the last event that was read: the stream goes on behind it."


@routes.get(
    "/v1/tasks/{uuid}/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
            "description": "`transition`, `progress`, `end`.",
        },
        204: {"description": "The task has ended, and the client has every event."},
        **refusals(404),
    },
    **needs(Permission.TASKS_READ),
)
async def get_events(
    request: Request,
    uuid: TaskUuid,
    last_event_id: Annotated[str | None, Header(max_length=60, description=PLACE)] = None,
    after: Annotated[str | None, Query(max_length=60, description="The same, for clients without headers.")] = None,
) -> Response:
    """Stream every transition of a task and its steps until the task ends, from the beginning or after an event."""

    async def follow(streams: Streams) -> AsyncIterator[bytes] | None:
        events = await program_of(request).events.follow(uuid, last_event_id or after)
        return None if events is None else _written(streams.through(events))

    return await streamed(request, follow)


async def streamed(request: Request, follow: Callable[[Streams], Awaitable[AsyncIterator[bytes] | None]]) -> Response:
    """Return a stream of the bytes from `follow`; 204 if `follow` returns None, 503 if too many streams are open."""
    streams: Streams = request.app.state.streams
    if not streams.enter():
        message = "too many streams are open"
        refused = problem(503, message, kind="too_many_streams", code="SERVICE_UNAVAILABLE", retry_after=FULL_SECONDS)
        return answer(refused, request.scope)
    with ExitStack() as place:
        place.callback(streams.leave)
        chunks = await follow(streams)
        return Response(status_code=204) if chunks is None else EventStream(chunks, place.pop_all())


class EventStream(StreamingResponse):
    """Streaming answer that keeps its stream reserved until it is sent or its client is gone."""

    def __init__(self, events: AsyncIterator[bytes], place: ExitStack) -> None:
        super().__init__(events, media_type=MEDIA_TYPE)
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer and release the reservation."""
        with self._place:
            await super().__call__(scope, receive, send)


async def _written(events: AsyncIterator[TaskEvent | None]) -> AsyncIterator[bytes]:
    last: TaskEvent | None = None
    yield f"retry: {AGAIN_MS}\n\n".encode()
    async for event in events:
        if event is None:
            yield b": nothing new\n\n"
            continue
        yield _event("progress" if event.kind == "progress" else "transition", _data(event), event.place)
        last = event if event.kind == "task" else last
    if last is not None and last.ends:
        yield _event("end", {"status": last.to_state})


def _event(name: str, data: dict[str, Any], place: str | None = None) -> bytes:
    number = f"id: {place}\n" if place else ""
    return f"event: {name}\n{number}data: {orjson.dumps(data).decode()}\n\n".encode()


def _data(event: TaskEvent) -> dict[str, Any]:
    common = {"step": event.step, "step_uuid": event.step_uuid, "at": event.at, "worker_uuid": event.worker}
    if event.kind == "progress":
        return {**common, **(event.reported or {"items_processed": event.items_processed})}
    moved = {"from_state": event.from_state, "to_state": event.to_state, "attempt": event.attempt}
    return {**common, **moved}
