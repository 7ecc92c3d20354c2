"""The description of the interface, and a page that shows it. Open to everybody: it says nothing of this deployment.

Both are made in a thread: the event loop has others to serve.
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
    """The interface as OpenAPI."""
    return Json(request.app.openapi())


@routes.get("/docs", include_in_schema=False)
@routes.get("/api-docs", include_in_schema=False)
def get_page(request: Request) -> HTMLResponse:
    """The operations on one page."""
    return HTMLResponse(page(request.app.openapi(), str(request.scope.get("root_path", ""))), headers=POLICY)
