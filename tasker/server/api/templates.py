"""Reading, drawing and registering templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import orjson
from fastapi import Header, Path, Query, Request
from starlette.responses import PlainTextResponse, Response

from tasker.engine.plans import TemplateFilter
from tasker.operations.permissions import Permission
from tasker.server.auth.gate import namespaces_of, needs, require_namespace
from tasker.server.cursors import cursor_after_template, template_place
from tasker.server.program import program_of
from tasker.server.rendering import Json
from tasker.server.routes import router
from tasker.server.shapes.problems import refusals
from tasker.server.shapes.templates import (
    GraphFormat,
    RegistrationResponse,
    TemplateDetail,
    TemplateGraph,
    TemplateListResponse,
    TemplateText,
    TemplateValidationResponse,
)
from tasker.services.tasks.read import names
from tasker.services.workflows.texts import CompiledTexts
from tasker.template.plan import Plan

routes = router("templates")
ONE = "/v1/templates/{namespace}/{name}/{version}"
COUNTED = 10_000
Part = Annotated[str, Path(max_length=255)]
UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "It is what the client has (`If-None-Match`)."}}
IfNoneMatch = Annotated[str | None, Header(max_length=1000)]


@routes.get(
    "/v1/templates",
    response_model=TemplateListResponse,
    responses=refusals(),
    **needs(Permission.TEMPLATES_READ, confines=True),
)
async def list_templates(
    request: Request,
    namespace: Annotated[str | None, Query(max_length=255)] = None,
    name: Annotated[str | None, Query(max_length=255, description="The template.")] = None,
    page: Annotated[int, Query(ge=0, le=100_000, description="Counted from 0.")] = 0,
    per_page: Annotated[int, Query(ge=1, le=500)] = 50,
    cursor: Annotated[
        str | None,
        Query(
            max_length=5000,
            description="`pagination.next_cursor` of the page before: each page costs the same; `page` is left out.",
        ),
    ] = None,
) -> Json:
    """The registered templates in each of their versions, by namespace and name; counted to 10,000.

    `namespaces` are those of this page.
    """
    plans, which = program_of(request).plans, TemplateFilter(namespace, name, names(namespaces_of(request)))
    after = template_place(cursor) if cursor else None
    rows = await plans.registered(which, limit=per_page + 1, offset=0 if after else page * per_page, after=after)
    page_rows, more = rows[:per_page], len(rows) > per_page
    total, counts = await plans.count(which, [*dict.fromkeys(row["namespace"] for row in page_rows)], COUNTED)
    pagination: dict[str, Any] = {
        "per_page": per_page,
        "has_next": more,
        "next_cursor": cursor_after_template(page_rows[-1]) if more else None,
    }
    if after is None:
        pages = {"page": page, "total_count": total, "total_pages": -(-total // per_page), "has_previous": page > 0}
        pagination |= pages
    return Json(
        {
            "templates": [_summary(row) for row in page_rows],
            "namespaces": [
                {"name": namespace_name, "description": None, "template_count": n}
                for namespace_name, n in counts.items()
            ],
            "total_count": total,
            "pagination": pagination,
        }
    )


def _summary(row: Mapping[str, Any]) -> dict[str, Any]:
    columns = ("namespace", "name", "version", "description", "updated_at")
    return {**{name: row[name] for name in columns}, "step_count": row["steps"]}


@routes.get(
    ONE, response_model=TemplateDetail, responses={**UNCHANGED, **refusals(404)}, **needs(Permission.TEMPLATES_READ)
)
async def get_template(
    request: Request, namespace: Part, name: Part, version: Part, if_none_match: IfNoneMatch = None
) -> Response:
    """Return one template with an ETag, which changes when the template's content changes."""
    plan = (await program_of(request).plans.find(namespace, name, version)).plan
    return _unchanged(plan, if_none_match) or Json(_detail(plan), headers=_tag(plan))


@routes.get(
    ONE + "/graph",
    response_model=TemplateGraph,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **UNCHANGED, **refusals(404)},
    **needs(Permission.TEMPLATES_READ),
)
async def get_graph(
    request: Request,
    namespace: Part,
    name: Part,
    version: Part,
    format: GraphFormat = "json",
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Return the graph of a template as data or as a drawing."""
    from tasker.template.drawing import FORMATS, graph_data

    plan = (await program_of(request).plans.find(namespace, name, version)).plan
    if unchanged := _unchanged(plan, if_none_match):
        return unchanged
    if format == "json":
        return Json(graph_data(plan), headers=_tag(plan))
    return PlainTextResponse(FORMATS[format](plan), headers=_tag(plan))


@routes.post(
    "/v1/templates",
    status_code=201,
    response_model=RegistrationResponse,
    responses={200: {"model": RegistrationResponse, "description": "Nothing was registered."}, **refusals(422)},
    **needs(Permission.TEMPLATES_REGISTER, confines=True, operates=True),
)
async def register_templates(request: Request, body: TemplateText) -> Json:
    """Register templates from YAML, all or none; 422 with every problem of the text."""
    texts = program_of(request).template_texts
    if body.validate_only:
        return Json(_registration(await texts.compiled(body.yaml, body.environment), registered=False))
    if namespaces_of(request) is not None:
        for plan in (await texts.compiled(body.yaml, body.environment)).plans:
            require_namespace(request, plan.namespace)
    registration = await texts.register(body.yaml, body.environment, force=body.force)
    return Json(_registration(registration, registered=True), 201)


@routes.post(
    ONE + "/validate",
    response_model=TemplateValidationResponse,
    responses=refusals(404),
    **needs(Permission.TEMPLATES_VALIDATE),
)
async def validate_template(request: Request, namespace: Part, name: Part, version: Part) -> Json:
    """Return whether live workers that serve the namespace have every handler of a template."""
    program = program_of(request)
    plan = (await program.plans.find(namespace, name, version)).plan
    processes = [process for process in await program.workers.list() if process.state == "live"]
    served = {name for process in processes if namespace in process.namespaces for name in process.callables}
    required = sorted({step.handler.callable for step in plan.steps if step.has_handler})
    errors = [
        f"no live worker of {namespace} has the handler {handler}" for handler in required if handler not in served
    ]
    answer = {"valid": not errors, "errors": errors, "required_capabilities": [namespace], "step_handlers": required}
    return Json(answer)


def _tag(plan: Plan) -> dict[str, str]:
    return {"ETag": f'"{plan.hash}"', "Cache-Control": "private, no-cache"}


def _unchanged(plan: Plan, if_none_match: str | None) -> Response | None:
    tag = _tag(plan)
    known = {entity.strip().removeprefix("W/") for entity in (if_none_match or "").split(",")}
    return Response(status_code=304, headers=tag) if known & {tag["ETag"], "*"} else None


def _detail(plan: Plan) -> dict[str, Any]:
    steps = [
        {
            "name": step.name,
            "description": step.description,
            "default_retryable": step.retry.max_attempts > 1,
            "default_max_attempts": step.retry.max_attempts,
            "type": str(step.type),
            "handler": step.handler.callable,
            "depends_on": list(step.depends_on),
        }
        for step in plan.steps
    ]
    return {
        "namespace": plan.namespace,
        "name": plan.name,
        "version": plan.version,
        "description": plan.description,
        "steps": steps,
        "configuration": orjson.loads(plan.to_json()),
    }


def _registration(compiled: CompiledTexts, *, registered: bool) -> dict[str, Any]:
    templates = [
        {"namespace": plan.namespace, "name": plan.name, "version": plan.version, "step_count": len(plan.steps)}
        for plan in compiled.plans
    ]
    diagnostics = [diagnostic.to_dict() for diagnostic in compiled.diagnostics]
    return {"registered": registered, "templates": templates, "diagnostics": diagnostics}
