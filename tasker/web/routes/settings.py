"""How this server is set up, which plugins it has, what is wrong with the fleet, who did what."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from tasker.api.application import Options
from tasker.api.permissions import Permission, caller_of, needs
from tasker.api.problems import problem_of
from tasker.api.program import program_of
from tasker.contracts.rules.permissions import MEANINGS
from tasker.errors import MessagingError
from tasker.web.rendering import page
from tasker.web.route import page_router
from tasker.web.views.task_search import moment_of

routes = page_router()
Word = Annotated[str, Query(max_length=255)]
PER_PAGE = 100


@routes.get("/settings", **needs(Permission.SYSTEM_CONFIG_READ))
async def show_settings(
    request: Request, q: Word = "", all_: Annotated[str, Query(alias="all", max_length=3)] = ""
) -> Response:
    """The configuration of this server with where each value is from; plugins; versions of the fleet."""
    options: Options = request.app.state.options
    shown = await asyncio.to_thread(options.shown) if options.shown else None
    settings = [each for each in (shown.settings if shown else ()) if _matches(each, q, bool(all_ or q))]
    processes = await program_of(request).workers.list()
    return page(
        request,
        "settings/page.html",
        settings=settings,
        shown=shown,
        q=q,
        every=bool(all_),
        processes=processes,
        permissions=_permissions(request),
    )


def _matches(each: Any, words: str, every: bool) -> bool:
    fits = words.lower() in f"{each.path} {each.meaning}".lower()
    return fits and (every or each.is_set)


def _permissions(request: Request) -> list[tuple[str, str, str]]:
    """Each permission with its meaning, and where the caller has it; empty: nowhere."""
    caller, rows = caller_of(request), []
    for permission, meaning in MEANINGS.items():
        where = caller.namespaces(permission) if caller.may(permission) else frozenset()
        rows.append((str(permission), meaning, "everywhere" if where is None else ", ".join(sorted(where))))
    return rows


@routes.get("/settings/doctor", **needs(Permission.SYSTEM_ANALYTICS_READ))
async def show_findings(request: Request) -> Response:
    """What is wrong with the fleet and its database, found anew each time."""
    problem = None
    found: Any = []
    try:
        found = await program_of(request).doctor.findings()
    except MessagingError as error:
        problem = problem_of(error)
    return page(request, "settings/doctor.html", 503 if problem else 200, findings=found, problem=problem)


@routes.get("/settings/actions", **needs(Permission.SYSTEM_ACTIONS_READ))
async def show_actions(request: Request, actor: Word = "", since: Word = "") -> Response:
    """Who did what by hand."""
    after: datetime | None = moment_of(since) if since else None
    found = await program_of(request).operator_log.list(actor=actor or None, since=after, limit=PER_PAGE)
    return page(request, "settings/actions.html", actions=found, actor=actor, since=since, most=PER_PAGE)
