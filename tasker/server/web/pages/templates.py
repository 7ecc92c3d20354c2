"""Pages of templates: list, statistics, text, comparison of two versions, and registration."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from starlette.responses import Response

from tasker.engine.plans import TemplateFilter
from tasker.errors import TaskerError, TemplateError
from tasker.operations.permissions import Permission
from tasker.server.auth.gate import actor_of, caller_of, namespaces_of, needs, require_namespace
from tasker.server.errors import problem_of
from tasker.server.program import program_of
from tasker.server.web.presenters import graph
from tasker.server.web.presenters.fleet import compared, lines_of, listed, pause_of, step_rows
from tasker.server.web.presenters.paging import PER_PAGE, NumberedPage, PageNumber, offset_of
from tasker.server.web.rendering import page, redirect
from tasker.server.web.route import page_router, sent
from tasker.services.operators.pauses import PauseTarget
from tasker.services.tasks.read import names
from tasker.services.wording import counted
from tasker.template.plan import Plan
from tasker.views.fleet import Pause

routes = page_router()
READ = needs(Permission.TEMPLATES_READ)
ONE = "/templates/{namespace}/{name}/{version}"
View = Literal["steps", "yaml", "versions"]
Version = Annotated[str, Query(alias="with", max_length=255)]
EXAMPLE = """name: hello
namespace: demo
version: 1.0.0
steps:
  - name: greet
    handler: demo.greet
"""


@routes.get("/templates", **needs(Permission.TEMPLATES_READ, confines=True))
async def list_templates(
    request: Request, namespace: Annotated[str, Query(max_length=255)] = "", number: PageNumber = 1
) -> Response:
    """A page of the templates, each by its newest version."""
    program, caller = program_of(request), caller_of(request)
    which = TemplateFilter(namespace.strip() or None, namespaces=names(namespaces_of(request)))
    rows = await program.plans.newest(which, limit=PER_PAGE + 1, offset=offset_of(number))
    watched = caller.may(Permission.SYSTEM_ANALYTICS_READ)
    overview = await program.fleet.overview(queues=0) if watched else None
    return page(
        request,
        "template/list.html",
        rows=listed(rows[:PER_PAGE], overview, await _pauses(request)),
        shown=NumberedPage(number, len(rows[:PER_PAGE]), len(rows) > PER_PAGE),
        namespace=namespace.strip(),
        watched=watched,
    )


@routes.get("/templates/{namespace}/{name}", **READ)
async def show_newest(request: Request, namespace: str, name: str) -> Response:
    """Redirect to the most recently registered version."""
    plan = (await program_of(request).plans.find(namespace, name)).plan
    return redirect(request, f"templates/{namespace}/{name}/{plan.version}")


@routes.get(ONE, **READ)
async def show_template(
    request: Request, namespace: str, name: str, version: str, view: View = "steps", other: Version = ""
) -> Response:
    """Show one version: its graph, steps and statistics; its text; or all versions, with one of them for comparison."""
    program = program_of(request)
    template_id, plan, _ = await program.plans.find(namespace, name, version)
    versions = await program.analytics.versions(namespace, name)
    pauses = await _pauses(request)
    parts: dict[str, Any] = {"drawing": None, "rows": (), "paces": None, "text": "", "pairs": None}
    if view == "steps":
        paces, serving = await asyncio.gather(
            program.analytics.paces(namespace, name, version), program.workers.serving(template_id)
        )
        parts |= {"drawing": graph.of_template(plan), "paces": paces, "rows": step_rows(plan, paces, serving)}
    elif view == "yaml":
        parts["text"] = await text_of(plan)
    elif other:
        beside = (await program.plans.find(namespace, name, other)).plan
        parts["pairs"] = compared(*await asyncio.gather(text_of(beside), text_of(plan)))
    return page(
        request,
        "template/page.html",
        plan=plan,
        view=view,
        other=other,
        versions=versions,
        pause=pause_of(pauses, namespace, name),
        **parts,
    )


async def _pauses(request: Request) -> Sequence[Pause]:
    """Return the pauses in force; none if the caller may not read them."""
    if not caller_of(request).may(Permission.SYSTEM_PAUSES_READ):
        return ()
    return (await program_of(request).pauses.list(log=0)).pauses


async def text_of(plan: Plan) -> str:
    """Return the template as YAML, generated in a thread because a large one takes a while."""
    from tasker.template.normalized import normalized_yaml

    return await asyncio.to_thread(normalized_yaml, plan)


@routes.post("/templates/{namespace}/{name}/{action}", **needs(Permission.SYSTEM_PAUSES_CHANGE, operates=True))
async def pause_or_resume(request: Request, namespace: str, name: str, action: Literal["pause", "resume"]) -> Response:
    """Pause or resume a template in every version."""
    program, form = program_of(request), sent(request)
    target = PauseTarget.of(template=f"{namespace}/{name}")
    if action == "pause":
        reason = form.required("reason", "a reason")
        paused = await program.pauses.pause(target, actor=actor_of(request), reason=reason)
        message = "Paused: running steps continue, no new ones start." if paused else "It was paused already."
    else:
        held = await program.pauses.resume(target, actor=actor_of(request), reason=form.text("reason"))
        message = "It was not paused." if held is None else f"Resumed: {counted(held, 'step')} can start now."
    return redirect(request, f"templates/{namespace}/{name}", message)


@routes.get("/templates/new", **needs(Permission.TEMPLATES_REGISTER, confines=True))
async def show_editor(request: Request) -> Response:
    """Show the editor with an example."""
    return _editor(request, EXAMPLE)


@routes.post("/templates/new", **needs(Permission.TEMPLATES_REGISTER, confines=True, operates=True))
async def check_or_register(request: Request) -> Response:
    """Check a text, and register its templates on request; a text with problems stays in the editor."""
    form, texts = sent(request), program_of(request).template_texts
    text, force = form.raw("text"), form.text("force") == "yes"
    try:
        compiled = await texts.compiled(text, form.text("environment") or None)
        for plan in compiled.plans:
            require_namespace(request, plan.namespace)
        if form.text("do") != "register":
            return _editor(request, text, found=compiled.diagnostics, plans=compiled.plans)
        registered = await texts.register(text, form.text("environment") or None, force=force)
    except TemplateError as error:
        return _editor(request, text, 422, found=error.diagnostics, problem=problem_of(error))
    except TaskerError as error:
        found_problem = problem_of(error)
        return _editor(request, text, found_problem["status"], problem=found_problem)
    first = registered.templates[0]
    message = f"Registered: {', '.join(str(plan.id) for plan in compiled.plans)}."
    return redirect(request, f"templates/{first.namespace}/{first.name}/{first.version}", message)


def _editor(
    request: Request, text: str, status: int = 200, found: Any = (), problem: Any = None, plans: Any = ()
) -> Response:
    known = [diagnostic for diagnostic in found if hasattr(diagnostic, "line")]
    return page(
        request,
        "template/editor.html",
        status,
        text=text,
        lines=lines_of(text, known) if status != 200 or plans else [],
        found=known,
        problem=None if known else problem,
        plans=plans,
        drawings=[(plan, graph.of_template(plan)) for plan in plans],
    )
