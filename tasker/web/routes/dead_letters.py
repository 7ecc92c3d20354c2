"""Lists of dead letters: most urgent first, grouped by failure, all entries, and tasks that are nearly stale."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from tasker.api.covering import redact_failures
from tasker.api.permissions import Permission, caller_of, namespaces_of, needs
from tasker.api.program import program_of
from tasker.api.routes.dead_letters import covered_entries
from tasker.services.dead_letters.records import REASONS, STATUSES
from tasker.web.rendering import page, url
from tasker.web.route import page_router
from tasker.web.views.dead_letters import EntrySearch, figures

routes = page_router()
READ = needs(Permission.DLQ_READ, confines=True)
Name = Annotated[str, Query(max_length=255)]
QUEUED, GROUPED, PER_PAGE, HOURS = 100, 50, 50, 24


@routes.get("/dead-letters", **READ)
async def show_queue(request: Request, namespace: Name = "") -> Response:
    """Show pending entries, most urgent first."""
    service = program_of(request).dead_letters
    where = _within(request, namespace)
    caller = caller_of(request)
    counts = caller.may(Permission.DLQ_STATS) and caller.namespaces(Permission.DLQ_STATS) is None
    return page(
        request,
        "dead_letters/queue.html",
        queue=await service.queue(limit=QUEUED, namespaces=where),
        figures=list(figures(await service.stats())) if counts and not namespace else [],
        namespace=namespace,
        most=QUEUED,
    )


@routes.get("/dead-letters/groups", **READ)
async def show_groups(request: Request, namespace: Name = "") -> Response:
    """Show pending entries grouped by failure, largest group first."""
    service, where = program_of(request).dead_letters, _within(request, namespace)
    found = [asdict(each) for each in await service.groups(limit=GROUPED, namespaces=where)]
    groups = await redact_failures(request, found, lambda group: group["namespaces"])
    trend = await service.trend([each["fingerprint"] for each in groups], hours=HOURS, namespaces=where)
    shown = [{**each, "trend": trend[each["fingerprint"]]} for each in groups]
    return page(request, "dead_letters/groups.html", groups=shown, namespace=namespace, hours=HOURS, most=GROUPED)


@routes.get("/dead-letters/entries", **READ)
async def list_entries(request: Request, after: Annotated[str, Query(max_length=36)] = "") -> Response:
    """Show all entries, newest first."""
    search, service = EntrySearch.of(request.query_params), program_of(request).dead_letters
    where = namespaces_of(request)
    found = await service.list(**search.filters, limit=PER_PAGE + 1, after=after or None, namespaces=where)
    entries = await covered_entries(request, found[:PER_PAGE])
    last = found[PER_PAGE - 1].dlq_entry_uuid if len(found) > PER_PAGE else None
    kept = [{"reason": each.dlq_reason, "status": each.resolution_status} for each in found]
    return page(
        request,
        "dead_letters/entries.html",
        entries=[{**shown, **words} for shown, words in zip(entries, kept, strict=False)],
        search=search,
        statuses=STATUSES,
        reasons=REASONS,
        first=url(request, "dead-letters/entries", **search.words),
        older=last and url(request, "dead-letters/entries", **search.words, after=last),
    )


@routes.get("/dead-letters/stale", **READ)
async def show_staleness(request: Request, namespace: Name = "") -> Response:
    """Show open tasks that are near or beyond the staleness limit."""
    found = await program_of(request).dead_letters.staleness(limit=QUEUED, namespaces=_within(request, namespace))
    return page(request, "dead_letters/stale.html", tasks=found, namespace=namespace, most=QUEUED)


def _within(request: Request, namespace: str) -> list[str] | None:
    """Return the namespaces to show, or None for all."""
    where = namespaces_of(request)
    if not namespace:
        return None if where is None else sorted(where)
    return [namespace] if where is None or namespace in where else []
