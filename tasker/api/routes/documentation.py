"""OpenAPI description and a page that shows it.

Both are open to everyone because they contain nothing about this deployment. They are generated in a thread so that
they do not block the event loop.
"""

from __future__ import annotations

from fastapi import Request
from starlette.responses import HTMLResponse

from tasker.api.description.page import page
from tasker.api.json_response import Json
from tasker.api.routes.route import router

routes = router("description")
POLICY = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"}


@routes.get("/openapi.json", include_in_schema=False)
@routes.get("/api-docs/openapi.json", include_in_schema=False)
def get_description(request: Request) -> Json:
    """Return the OpenAPI description."""
    return Json(request.app.openapi())


@routes.get("/docs", include_in_schema=False)
@routes.get("/api-docs", include_in_schema=False)
def get_page(request: Request) -> HTMLResponse:
    """Return a page with all operations."""
    return HTMLResponse(page(request.app.openapi(), str(request.scope.get("root_path", ""))), headers=POLICY)
