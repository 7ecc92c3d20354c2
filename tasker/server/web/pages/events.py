"""Page of published domain events and of the positions of their subscribers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from tasker.errors import UsageError
from tasker.operations.permissions import Permission
from tasker.server.auth.gate import caller_of, namespaces_of, needs
from tasker.server.errors import problem_of
from tasker.server.program import program_of
from tasker.server.web.presenters.tasks import moment_of
from tasker.server.web.rendering import page, redirect, url
from tasker.server.web.route import page_router, sent
from tasker.services.wording import counted
from tasker.template.names import MAX_POSITION
from tasker.views.events import EventFilter

routes = page_router()
READ = needs(Permission.TASKS_LIST, confines=True)
CHANGE = needs(Permission.STEPS_RESOLVE, operates=True)
Word = Annotated[str, Query(max_length=255)]
PER_PAGE = 50


@routes.get("/events", **READ)
async def list_events(
    request: Request,
    name: Word = "",
    namespace: Word = "",
    task: Word = "",
    correlation: Word = "",
    withheld: Annotated[str, Query(max_length=3)] = "",
    after: Annotated[int | None, Query(ge=0, le=MAX_POSITION)] = None,
) -> Response:
    """Show the newest events or those after a position; with `withheld`, those that were not published, with the
    reason."""
    which = EventFilter(name.split(), namespace or None, task or None, correlation or None)
    service, where = program_of(request).domain_events, namespaces_of(request)
    words = {"name": name, "namespace": namespace, "task": task, "correlation": correlation, "withheld": withheld}
    results: dict[str, Any] = {"events": [], "last": None, "problem": None}
    status = 200
    try:
        if withheld:
            results["events"] = await service.withheld(which, limit=PER_PAGE, namespaces=where)
        else:
            listed = await service.page(which, after=after or 0, limit=PER_PAGE, newest=after is None, namespaces=where)
            results["events"] = listed.events if after is not None else list(listed.events)[::-1]
            results["last"] = listed.last if after is not None and len(listed.events) == PER_PAGE else None
    except UsageError as error:
        results["problem"], status = problem_of(error), 400
    watched = caller_of(request).may(Permission.SYSTEM_ANALYTICS_READ) and where is None
    return page(
        request,
        "events/page.html",
        status,
        words=words,
        after=after,
        further=results["last"] and url(request, "events", **words, after=results["last"]),
        subscribers=await service.subscribers() if watched else [],
        deliveries=await service.deliveries.list(limit=PER_PAGE) if watched else [],
        **results,
    )


@routes.post("/events/subscribers/{name}/replay", **CHANGE)
async def replay(request: Request, name: str) -> Response:
    """Move a subscriber back so that it reads events again."""
    form, service = sent(request), program_of(request).domain_events
    after, since = form.text("after"), form.text("since")
    if after and not (after.isdecimal() and int(after) <= MAX_POSITION):
        raise UsageError(f"{after!r:.60} is not a position", hint="a whole number, as the list of events has it")
    moment = moment_of(since) if since else None
    result = await service.replay(name, after=int(after) if after else None, since=moment)
    return redirect(request, "events", f"{name} reads {counted(result.events, 'event')} again.")


@routes.post("/events/subscribers/{name}/retry", **CHANGE)
async def retry(request: Request, name: str) -> Response:
    """Retry the events that a subscriber has quarantined."""
    one = sent(request).text("event")
    number = await program_of(request).domain_events.deliveries.retry(name, [one] if one else None)
    return redirect(request, "events", f"{name} tries {counted(number, 'event')} again.")
