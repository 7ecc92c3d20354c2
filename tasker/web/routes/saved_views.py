"""Saved views: filters of a task list stored under a name, for everyone."""

from __future__ import annotations

from urllib.parse import parse_qsl

from fastapi import Request
from starlette.responses import Response

from tasker.api.permissions import Permission, actor_of, needs
from tasker.api.program import program_of
from tasker.web.rendering import redirect
from tasker.web.route import page_router, sent
from tasker.web.views.task_search import Search

routes = page_router()
CHANGES = needs(Permission.TASKS_VIEWS_CHANGE, operates=True)


@routes.post("/tasks/views", **CHANGES)
async def save(request: Request) -> Response:
    """Save the filters of the submitting page."""
    form = sent(request)
    words = Search.read(dict(parse_qsl(form.text("address")))).words  # words that are no filters are left out
    name = form.required("name", "a name")
    await program_of(request).saved_views.save(name, Search.read(words).address, by=actor_of(request))
    return redirect(request, "tasks", f"The view “{name}” is saved.", **words)


@routes.post("/tasks/views/remove", **CHANGES)
async def remove(request: Request) -> Response:
    name = sent(request).required("name", "a name")
    removed = await program_of(request).saved_views.remove(name)
    return redirect(request, "tasks", f"The view “{name}” is removed." if removed else f"There is no view “{name}”.")
