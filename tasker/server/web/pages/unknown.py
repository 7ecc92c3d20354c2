"""Page of keyboard shortcuts, and the answer to unknown addresses under `/ui`."""

from __future__ import annotations

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tasker.server.web.rendering import page, redirect
from tasker.server.web.route import page_router

routes = page_router()


@routes.get("/help")
async def show_keys(request: Request) -> Response:
    """Show the keyboard shortcuts; with scripts, every page can show them."""
    return page(request, "help.html")


@routes.get("/{rest:path}")
async def nothing_here(request: Request, rest: str) -> Response:
    """Answer 404."""
    if not rest:
        return redirect(request)
    raise HTTPException(404, f"there is no page /ui/{rest}")
