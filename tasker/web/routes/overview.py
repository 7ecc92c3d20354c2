"""Overview page: the state of the fleet and the problems that need an operator."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from tasker.api.permissions import Permission, needs
from tasker.api.program import program_of
from tasker.web.rendering import page
from tasker.web.route import page_router
from tasker.web.views import overview as view
from tasker.web.views.charts import charts_of
from tasker.web.views.pages import PER_PAGE, NumberedPage, PageNumber, offset_of

routes = page_router()
SLOWEST = 8
"""Templates that the page names."""


@routes.get("", **needs(Permission.SYSTEM_ANALYTICS_READ))
async def show_overview(request: Request, number: PageNumber = 1) -> Response:
    """Show the state of the fleet now and over the last hour, with a page of its namespaces."""
    fleet = program_of(request).fleet
    lately = await fleet.activity(namespaces=PER_PAGE, offset=offset_of(number))
    namespaces = [each.namespace for each in lately.namespaces]
    found = await fleet.overview(namespaces=namespaces, templates=SLOWEST)
    rows = view.namespaces(found, lately)
    return page(
        request,
        "overview.html",
        found=found,
        lately=lately,
        figures=view.figures(found, lately),
        charts=charts_of(lately),
        span=view.span(lately),
        needs=view.needs(found, lately),
        rows=rows,
        shown=NumberedPage(number, len(rows), offset_of(number) + len(rows) < found.namespaces),
    )
