"""Pages of task lists, their filters and saved views."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Query, Request
from starlette.responses import Response

from tasker.engine.states.task import TaskState
from tasker.errors import UsageError
from tasker.operations.permissions import Permission
from tasker.server.auth.gate import actor_of, namespaces_of, needs, tenants_of
from tasker.server.errors import problem_of
from tasker.server.program import program_of
from tasker.server.web.presenters.tasks import SPANS, ListPage, Search
from tasker.server.web.rendering import page, redirect, url
from tasker.server.web.route import page_router, sent
from tasker.services.cursors import cursor_after, cursor_of
from tasker.services.tasks.lists import LOOKED_INTO, SavedView, TaskFilter
from tasker.services.tasks.read import names
from tasker.services.tasks.search import MOST_NAMED, SearchMatch

routes = page_router()
PER_PAGE = 50
Cursor = Annotated[str, Query(max_length=200)]


@routes.get("/tasks", **needs(Permission.TASKS_LIST, confines=True, tenants=True))
async def list_tasks(
    request: Request,
    q: Annotated[str, Query(max_length=255)] = "",
    cursor: Cursor = "",
    back: Cursor = "",
) -> Response:
    """Show a page of matching tasks; `q` is the text of the search field that every page has."""
    search = Search.read(request.query_params)
    if q.strip():
        return await _search(request, q.strip())
    saved = await program_of(request).saved_views.list()
    try:
        turned = await _turned(request, search, cursor, back)
    except UsageError as error:
        return _page(request, search, ListPage([], None, None), saved, status=400, problem=problem_of(error))
    return _page(request, search, turned, saved)


def which_tasks(request: Request, search: Search) -> TaskFilter:
    """Return the filter of the tasks that the caller may see. Raises `UsageError` for invalid filters."""
    return search.filter(names(namespaces_of(request)), datetime.now(UTC), names(tenants_of(request)))


async def _turned(request: Request, search: Search, cursor: str, back: str) -> ListPage:
    """Return the tasks after `cursor`, or before `back`."""
    which = which_tasks(request, search)
    place = cursor_of(cursor or back, search.order) if cursor or back else None
    ascending = search.oldest_first != bool(back)
    views = program_of(request).views
    rows, read_to = await views.part(which, limit=PER_PAGE + 1, after=place, oldest_first=ascending)
    visible = rows[:PER_PAGE][::-1] if back else rows[:PER_PAGE]
    places = [cursor_after(row.task_uuid, search.order) for row in visible]
    more = len(rows) > PER_PAGE
    on = None if more or read_to is None else cursor_after(read_to, search.order)  # where the search goes on
    before, behind = (more, True) if back else (bool(cursor), more)
    first = (places[0] if places and before else None) or (on if back else None)
    last = (places[-1] if places and behind else None) or (None if back else on)
    partly = search.field and not await views.inputs_are_indexed()
    looked_into = LOOKED_INTO if partly else 0
    return ListPage(visible, first, last, looked_into, LOOKED_INTO if on else 0)


def _page(
    request: Request,
    search: Search,
    turned: ListPage,
    saved: Sequence[SavedView],
    status: int = 200,
    problem: Any = None,
) -> Response:
    def link(**place: str) -> str:
        return url(request, "tasks", **search.words, **place)

    return page(
        request,
        "tasks.html",
        status,
        search=search,
        tasks=turned.tasks,
        turned=turned,
        saved=saved,
        problem=problem,
        spans=list(SPANS),
        states=[state.value for state in TaskState],
        before=turned.before and link(back=turned.before),
        beyond=turned.behind and link(cursor=turned.behind),
        first=link(),
    )


async def _search(request: Request, text: str) -> Response:
    """Redirect to the page of the only match; list the matches if there are several."""
    if tenants_of(request) is not None:  # the other results are not filtered by tenant
        return redirect(request, "tasks", tag=text)
    match = await program_of(request).search.find(text, namespaces=namespaces_of(request))
    if match.kind in ("tasks", "templates") and len([*match.identifiers, *match.templates]) > 1:
        return page(request, "sought.html", text=text, sought=match, most=MOST_NAMED)
    if match.kind == "nothing":
        message = "No task, dead letter, template, namespace or tag matches."
        return redirect(request, "tasks", message, tag=text)
    path, query = _target(match, text)
    return redirect(request, path, **query)


def _target(match: SearchMatch, text: str) -> tuple[str, dict[str, Any]]:
    """Return the page of the first match."""
    first = match.identifiers[0] if match.identifiers else ""
    pages: dict[str, tuple[str, dict[str, Any]]] = {
        "task": (f"tasks/{first}", {}),
        "entry": (f"dead-letters/entries/{first}", {}),
        "correlation": ("tasks", {"correlation": first}),
        "namespace": ("tasks", {"namespace": first}),
        "tag": ("tasks", {"tag": first}),
    }
    return pages[match.kind] if first else ("tasks", _template(match.templates, text))


def _template(templates: Sequence[tuple[str, str]], text: str) -> dict[str, str]:
    """Return the filter for templates of one name.

    It includes the namespace if the text named it or did not match exactly.
    """
    namespace, template = templates[0]
    named = "/" in text or text.lower() != template.lower()
    return {"namespace": namespace if named else "", "template": template}


CHANGES = needs(Permission.TASKS_VIEWS_CHANGE, operates=True)


@routes.post("/tasks/views", **CHANGES)
async def save(request: Request) -> Response:
    """Save the filters of the submitting page."""
    form = sent(request)
    words = Search.read(dict(parse_qsl(form.text("address")))).words  # words that are no filters are left out
    name = form.required("name", "a name")
    await program_of(request).saved_views.save(name, Search.read(words).address, actor=actor_of(request))
    return redirect(request, "tasks", f"The view “{name}” is saved.", **words)


@routes.post("/tasks/views/remove", **CHANGES)
async def remove(request: Request) -> Response:
    name = sent(request).required("name", "a name")
    removed = await program_of(request).saved_views.remove(name)
    return redirect(request, "tasks", f"The view “{name}” is removed." if removed else f"There is no view “{name}”.")
