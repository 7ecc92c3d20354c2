"""Reading, drawing and registering templates."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Header, Path, Request
from starlette.responses import PlainTextResponse, Response

from tasker.operations.permissions import Permission
from tasker.operations.templates import TEMPLATE, TemplateOperations
from tasker.server.auth.gate import namespaces_of, needs
from tasker.server.operation_routes import WithHeaders, answer_type, published_type, serves
from tasker.server.program import program_of
from tasker.server.rendering import Json
from tasker.server.routes import router
from tasker.server.shapes.problems import refusals
from tasker.template.plan import Plan
from tasker.views.deployments import Deployment
from tasker.views.model import encode
from tasker.views.templates import (
    Registration,
    TemplateDetail,
    TemplateGraph,
    TemplatePage,
    TemplateValidation,
    template_graph,
)

routes = router("templates")
Part = Annotated[str, Path(max_length=255)]
GraphFormat = Literal["json", "mermaid", "dot", "text"]
UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "It is what the client has (`If-None-Match`)."}}
IfNoneMatch = Annotated[str | None, Header(max_length=1000)]
NOTHING: dict[int | str, dict[str, Any]] = {
    200: {"model": answer_type(TemplateOperations.register_templates), "description": "Nothing was registered."}
}


@serves(routes, TemplateOperations.list_templates)
async def list_templates(request: Request, **which: Any) -> TemplatePage:
    return await program_of(request).template_texts.page(**which, namespaces=namespaces_of(request))


@serves(routes, TemplateOperations.get_template, UNCHANGED, if_none_match=IfNoneMatch)
async def get_template(
    request: Request, namespace: str, name: str, version: str, if_none_match: str | None
) -> WithHeaders[TemplateDetail] | Response:
    program = program_of(request)
    plan = (await program.plans.find(namespace, name, version)).plan
    if unchanged := _unchanged(plan, if_none_match):
        return unchanged
    return WithHeaders(await program.template_texts.detail(namespace, name, version), _tag(plan))


@routes.get(
    TEMPLATE + "/graph",
    response_model=published_type(TemplateGraph),
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
    from tasker.template.drawing import FORMATS

    plan = (await program_of(request).plans.find(namespace, name, version)).plan
    if unchanged := _unchanged(plan, if_none_match):
        return unchanged
    if format == "json":
        return Json(encode(TemplateGraph, template_graph(plan)), headers=_tag(plan))
    return PlainTextResponse(FORMATS[format](plan), headers=_tag(plan))


@serves(routes, TemplateOperations.register_templates, NOTHING)
async def register_templates(request: Request, validate_only: bool, **what: Any) -> Registration | Response:
    texts, where = program_of(request).template_texts, namespaces_of(request)
    done = await texts.register(**what, validate_only=validate_only, namespaces=where)
    return done if done.registered else Json(encode(Registration, done))


@serves(routes, TemplateOperations.plan_templates)
async def plan_templates(request: Request, **what: Any) -> Deployment:
    return await program_of(request).deployments.plan(**what, namespaces=namespaces_of(request))


@serves(routes, TemplateOperations.apply_templates)
async def apply_templates(request: Request, **what: Any) -> Registration:
    return await program_of(request).deployments.apply(**what, namespaces=namespaces_of(request))


@serves(routes, TemplateOperations.validate_template)
async def validate_template(request: Request, **named: str) -> TemplateValidation:
    return await program_of(request).template_texts.validation(**named)


def _tag(plan: Plan) -> dict[str, str]:
    return {"ETag": f'"{plan.hash}"', "Cache-Control": "private, no-cache"}


def _unchanged(plan: Plan, if_none_match: str | None) -> Response | None:
    tag = _tag(plan)
    known = {entity.strip().removeprefix("W/") for entity in (if_none_match or "").split(",")}
    return Response(status_code=304, headers=tag) if known & {tag["ETag"], "*"} else None
