"""Styles, scripts and images of the pages; open to everyone because they contain nothing about this deployment."""

from __future__ import annotations

from mimetypes import guess_type

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response

from tasker.server.web.route import PageRoute, page_router
from tasker.server.web.site import FOLDER, revision


class FileRoute(PageRoute):
    """Answers everybody alike."""

    has_viewer = False


routes = page_router(FileRoute)
TYPES = {".mjs": "text/javascript", ".js": "text/javascript", ".svg": "image/svg+xml", ".css": "text/css"}
KEPT = "public, max-age=31536000, immutable"


@routes.get("/static/{given}/{name:path}")
async def get_file(request: Request, given: str, name: str) -> Response:
    """Return one file.

    A file requested under another revision is served without caching: two releases may run side by side.
    """
    path = (FOLDER / name).resolve()
    if not path.is_relative_to(FOLDER) or not path.is_file():
        raise HTTPException(404, f"there is no file {name}")
    kind = TYPES.get(path.suffix) or guess_type(path.name)[0] or "application/octet-stream"
    headers = {"Cache-Control": KEPT if given == revision() else "no-cache"}
    return FileResponse(path, media_type=kind, headers=headers)
