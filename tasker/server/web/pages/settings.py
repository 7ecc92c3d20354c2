"""Configuration of this server, its plugins, problems of the fleet, and the audit log."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from tasker.errors import MessagingError
from tasker.operations.permissions import MEANINGS, Permission
from tasker.server.application import Options
from tasker.server.auth.gate import caller_of, needs
from tasker.server.errors import problem_of
from tasker.server.program import program_of
from tasker.server.web.presenters.tasks import moment_of
from tasker.server.web.rendering import page
from tasker.server.web.route import page_router

routes = page_router()
Word = Annotated[str, Query(max_length=255)]
PER_PAGE = 100


@routes.get("/settings", **needs(Permission.SYSTEM_CONFIG_READ))
async def show_settings(
    request: Request, q: Word = "", all_: Annotated[str, Query(alias="all", max_length=3)] = ""
) -> Response:
    """Show the configuration with the source of each value, the plugins, and the versions of the fleet."""
    options: Options = request.app.state.options
    configuration = await asyncio.to_thread(options.shown) if options.shown else None
    settings = [
        setting
        for setting in (configuration.settings if configuration else ())
        if _matches(setting, q, bool(all_ or q))
    ]
    processes = await program_of(request).workers.list()
    return page(
        request,
        "settings/page.html",
        settings=settings,
        shown=configuration,
        q=q,
        every=bool(all_),
        processes=processes,
        permissions=_permissions(request),
    )


def _matches(row: Any, words: str, every: bool) -> bool:
    fits = words.lower() in f"{row.path} {row.meaning}".lower()
    return fits and (every or row.is_set)


def _permissions(request: Request) -> list[tuple[str, str, str]]:
    """Return each permission with its meaning and the namespaces in which the caller has it; empty means nowhere."""
    caller, rows = caller_of(request), []
    for permission, meaning in MEANINGS.items():
        where = caller.namespaces(permission) if caller.may(permission) else frozenset()
        rows.append((str(permission), meaning, "everywhere" if where is None else ", ".join(sorted(where))))
    return rows


@routes.get("/settings/doctor", **needs(Permission.SYSTEM_ANALYTICS_READ))
async def show_findings(request: Request) -> Response:
    """Show problems of the fleet and its database, checked on every request."""
    problem = None
    findings: Any = []
    try:
        findings = await program_of(request).doctor.findings()
    except MessagingError as error:
        problem = problem_of(error)
    return page(request, "settings/doctor.html", 503 if problem else 200, findings=findings, problem=problem)


@routes.get("/settings/actions", **needs(Permission.SYSTEM_ACTIONS_READ))
async def show_actions(request: Request, actor: Word = "", since: Word = "") -> Response:
    """Show the audit log of operator actions."""
    after: datetime | None = moment_of(since) if since else None
    actions = await program_of(request).operator_log.list(actor=actor or None, since=after, limit=PER_PAGE)
    return page(request, "settings/actions.html", actions=actions, actor=actor, since=since, most=PER_PAGE)
