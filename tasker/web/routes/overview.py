"""The first page: how the fleet does, and what needs a person."""

from __future__ import annotations

import asyncio

from fastapi import Request
from starlette.responses import Response

from tasker.api.permissions import Permission, needs
from tasker.api.program import program_of
from tasker.web.rendering import page
from tasker.web.route import page_router
from tasker.web.views import overview as view
from tasker.web.views.charts import charts_of

routes = page_router()


@routes.get("", **needs(Permission.SYSTEM_ANALYTICS_READ))
async def show_overview(request: Request) -> Response:
    """How the fleet does now, and has done for an hour."""
    fleet = program_of(request).fleet
    found, lately = await asyncio.gather(fleet.overview(), fleet.activity())
    return page(
        request,
        "overview.html",
        found=found,
        lately=lately,
        figures=view.figures(found, lately),
        charts=charts_of(lately),
        span=view.span(lately),
        needs=view.needs(found, lately),
        rows=view.namespaces(found, lately),
    )
