"""The list of keys, and addresses below `/ui` that lead nowhere."""

from __future__ import annotations

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tasker.web.rendering import page, redirect
from tasker.web.route import page_router

routes = page_router()


@routes.get("/help")
async def show_keys(request: Request) -> Response:
    """The keys; with scripts they are shown on every page."""
    return page(request, "help.html")


@routes.get("/{rest:path}")
async def nothing_here(request: Request, rest: str) -> Response:
    """Say so."""
    if not rest:
        return redirect(request)
    raise HTTPException(404, f"there is no page /ui/{rest}")
