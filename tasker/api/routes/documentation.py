"""The description of the interface, and a page that shows it. Open to everybody: it says nothing of this deployment."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import Request
from starlette.responses import HTMLResponse

from tasker.api.json_response import Json
from tasker.api.permissions import REQUIRED
from tasker.api.routes.route import router

routes = router("description")
STYLE = "body{font:15px system-ui;max-width:60em;margin:2em auto;padding:0 1em}code{background:#8882;padding:.1em .3em}"
POLICY = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"}


@routes.get("/openapi.json", include_in_schema=False)
@routes.get("/api-docs/openapi.json", include_in_schema=False)
async def get_description(request: Request) -> Json:
    """The interface as OpenAPI."""
    return Json(request.app.openapi())


@routes.get("/docs", include_in_schema=False)
@routes.get("/api-docs", include_in_schema=False)
async def get_page(request: Request) -> HTMLResponse:
    """The operations on one page, without scripts and without anything from elsewhere."""
    found: dict[str, Any] = request.app.openapi()
    items = [
        _item(method, path, operation)
        for path, operations in found["paths"].items()
        for method, operation in operations.items()
    ]
    root = escape(str(request.scope.get("root_path", "")))
    text = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Tasker</title><style>{STYLE}</style>"
        f"<h1>Tasker {escape(found['info']['version'])}</h1>"
        f'<p>For tools: <a href="{root}/openapi.json">openapi.json</a></p>{"".join(items)}</html>'
    )
    return HTMLResponse(text, headers=POLICY)


def _item(method: str, path: str, operation: dict[str, Any]) -> str:
    names = ", ".join(f"<code>{escape(each['name'])}</code>" for each in operation.get("parameters", ()))
    permission = f" Permission <code>{escape(operation[REQUIRED])}</code>." if REQUIRED in operation else ""
    words = escape(operation.get("description", "").partition("\n")[0])
    return f"<h3><code>{method.upper()} {escape(path)}</code></h3><p>{words}{permission}</p><p>{names}</p>"
