"""Overview page: the state of the fleet and the problems that need an operator."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from tasker.operations.permissions import Permission
from tasker.server.auth.gate import needs
from tasker.server.program import program_of
from tasker.server.web.presenters import overview
from tasker.server.web.presenters.overview import charts_of
from tasker.server.web.presenters.paging import PER_PAGE, NumberedPage, PageNumber, offset_of
from tasker.server.web.rendering import page
from tasker.server.web.route import page_router

routes = page_router()
SLOWEST = 8
"""Templates that the page names."""


@routes.get("", **needs(Permission.SYSTEM_ANALYTICS_READ))
async def show_overview(request: Request, number: PageNumber = 1) -> Response:
    """Show the state of the fleet now and over the last hour, with a page of its namespaces."""
    fleet = program_of(request).fleet
    lately = await fleet.activity(namespaces=PER_PAGE, offset=offset_of(number))
    namespaces = [activity.namespace for activity in lately.namespaces]
    found = await fleet.overview(namespaces=namespaces, templates=SLOWEST)
    rows = overview.namespaces(found, lately)
    return page(
        request,
        "overview.html",
        found=found,
        lately=lately,
        figures=overview.figures(found, lately),
        charts=charts_of(lately),
        span=overview.span(lately),
        needs=overview.needs(found, lately),
        rows=rows,
        shown=NumberedPage(number, len(rows), offset_of(number) + len(rows) < found.namespaces),
    )
