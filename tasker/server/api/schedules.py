"""Routes of schedules and their fires."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from tasker.operations.permissions import Permission
from tasker.server.auth.gate import actor_of, namespaces_of, needs, require_namespace
from tasker.server.program import program_of
from tasker.server.rendering import Json
from tasker.server.routes import location_of, router
from tasker.server.shapes.problems import refusals
from tasker.server.shapes.texts import AwareMoment, Name, Text
from tasker.views.schedules import Backfill, Schedule, ScheduleFire, UpcomingFire

routes = router("schedules")
READ = needs(Permission.SCHEDULES_READ, confines=True)
CHANGE = needs(Permission.SCHEDULES_CHANGE, confines=True, operates=True)
BACKFILL = needs(Permission.SCHEDULES_CHANGE, confines=True, operates=True, unless="dry_run")
Word = Annotated[str | None, Query(max_length=255)]
Namespace = Annotated[str, Path(max_length=255)]
Template = Annotated[str, Path(max_length=255)]
ScheduleName = Annotated[str, Path(max_length=255)]
ONE = "/v1/schedules/{namespace}/{template}/{name}"


class CreateScheduleRequest(BaseModel):
    """Schedule of a registered template; `schedule` has the keys that it would have in the template."""

    model_config = ConfigDict(extra="forbid")

    namespace: Name
    template: Name
    name: Name
    version: Name | None = Field(None, description="Without one the version that was registered last, at each fire.")
    schedule: dict[str, Any] = Field(examples=[{"cron": "0 2 * * *", "timezone": "Europe/Berlin"}])
    overwrite: bool = Field(False, description="Replace a schedule of that name that was created like this.")
    actor: Name | None = None


class ScheduleActionRequest(BaseModel):
    """Reason and actor of an action."""

    model_config = ConfigDict(extra="forbid")

    reason: Text = ""
    actor: Name | None = None


class BackfillRequest(ScheduleActionRequest):
    """Span of a backfill: fire times from `begin` until before `end`."""

    begin: AwareMoment
    end: AwareMoment
    dry_run: bool = Field(False, description="Return the fire times and change nothing.")


class ScheduleChangeResponse(BaseModel):
    """Result of an action; `changed` is false if the schedule was paused, or not paused, before."""

    schedule: str
    changed: bool


class TriggerResponse(BaseModel):
    """Task that was submitted."""

    task_uuid: str


@routes.get("/v1/schedules", response_model=list[Schedule], responses=refusals(), **READ)
async def list_schedules(
    request: Request,
    namespace: Word = None,
    template: Word = None,
    after: Annotated[
        str, Query(max_length=800, description="The last one of the page before: `ns/template/name`.")
    ] = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Json:
    """Return schedules by namespace, template and name, without the context of their tasks."""
    where = namespaces_of(request)
    which: dict[str, Any] = {"namespace": namespace, "template": template, "namespaces": where}
    return Json(await program_of(request).schedules.list(**which, after=after, limit=limit))


@routes.post("/v1/schedules", response_model=Schedule, status_code=201, responses=refusals(404), **CHANGE)
async def create_schedule(request: Request, body: CreateScheduleRequest) -> Json:
    """Create a schedule of a registered template. 400 if it exists, or if the template declares it."""
    require_namespace(request, body.namespace)
    address = f"{body.namespace}/{body.template}/{body.name}"
    more: dict[str, Any] = {"version": body.version, "overwrite": body.overwrite}
    actor = actor_of(request, body.actor)
    return Json(await program_of(request).schedules.create(address, body.schedule, **more, actor=actor), 201)


@routes.get(ONE, response_model=Schedule, responses=refusals(404), **READ)
async def get_schedule(request: Request, namespace: Namespace, template: Template, name: ScheduleName) -> Json:
    """Return one schedule with the context of its tasks, in which sensitive values are redacted."""
    return Json(await program_of(request).schedules.get(f"{namespace}/{template}/{name}"))


@routes.delete(ONE, response_model=ScheduleChangeResponse, responses=refusals(404), **CHANGE)
async def delete_schedule(
    request: Request,
    namespace: Namespace,
    template: Template,
    name: ScheduleName,
    reason: Annotated[str, Query(max_length=1024)] = "",
    actor: Word = None,
) -> Json:
    """Delete a schedule with its history; its tasks stay. 400 while a template declares it."""
    address = f"{namespace}/{template}/{name}"
    await program_of(request).schedules.delete(address, actor=actor_of(request, actor), reason=reason)
    return Json({"schedule": address, "changed": True})


@routes.get(f"{ONE}/upcoming", response_model=list[UpcomingFire], responses=refusals(404), **READ)
async def list_upcoming_fires(
    request: Request,
    namespace: Namespace,
    template: Template,
    name: ScheduleName,
    count: Annotated[int, Query(ge=1, le=100)] = 10,
    after: Annotated[AwareMoment | None, Query(description="Without one: now.")] = None,
) -> Json:
    """Return the next fire times, in UTC and in the zone of the schedule. A pause does not change them."""
    address = f"{namespace}/{template}/{name}"
    return Json(await program_of(request).schedules.upcoming(address, count=count, after=after))


@routes.get(f"{ONE}/fires", response_model=list[ScheduleFire], responses=refusals(404), **READ)
async def list_fires(
    request: Request,
    namespace: Namespace,
    template: Template,
    name: ScheduleName,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    before: Annotated[AwareMoment | None, Query(description="Only earlier fire times.")] = None,
) -> Json:
    """Return fires, the newest first, with what became of each."""
    address = f"{namespace}/{template}/{name}"
    return Json(await program_of(request).schedules.fires(address, limit=limit, before=before))


@routes.post(f"{ONE}/pause", response_model=ScheduleChangeResponse, responses=refusals(404), **CHANGE)
async def pause_schedule(
    request: Request, namespace: Namespace, template: Template, name: ScheduleName, body: ScheduleActionRequest
) -> Json:
    """Pause a schedule: it submits nothing until it is resumed. Open tasks continue."""
    address = f"{namespace}/{template}/{name}"
    actor = actor_of(request, body.actor)
    changed = await program_of(request).schedules.pause(address, actor=actor, reason=body.reason)
    return Json({"schedule": address, "changed": changed})


@routes.post(f"{ONE}/resume", response_model=ScheduleChangeResponse, responses=refusals(404), **CHANGE)
async def resume_schedule(
    request: Request, namespace: Namespace, template: Template, name: ScheduleName, body: ScheduleActionRequest
) -> Json:
    """End a pause. Fire times of the pause get no tasks; a backfill submits them."""
    address = f"{namespace}/{template}/{name}"
    actor = actor_of(request, body.actor)
    changed = await program_of(request).schedules.resume(address, actor=actor, reason=body.reason)
    return Json({"schedule": address, "changed": changed})


@routes.post(f"{ONE}/trigger", response_model=TriggerResponse, status_code=201, responses=refusals(404, 409), **CHANGE)
async def trigger_schedule(
    request: Request, namespace: Namespace, template: Template, name: ScheduleName, body: ScheduleActionRequest
) -> Json:
    """Submit a task of the schedule now, also while it is paused or has an open task."""
    address = f"{namespace}/{template}/{name}"
    actor = actor_of(request, body.actor)
    task = await program_of(request).schedules.trigger(address, actor=actor, reason=body.reason)
    return Json({"task_uuid": task}, 201, location_of(request, task))


@routes.post(f"{ONE}/backfill", response_model=Backfill, responses=refusals(404), **BACKFILL)
async def backfill_schedule(
    request: Request, namespace: Namespace, template: Template, name: ScheduleName, body: BackfillRequest
) -> Json:
    """Submit the tasks of past fire times that have none, one after the other. `dry_run` only returns the times."""
    service, address = program_of(request).schedules, f"{namespace}/{template}/{name}"
    if body.dry_run:
        return Json(await service.plan_backfill(address, body.begin, body.end))
    actor = actor_of(request, body.actor)
    return Json(await service.backfill(address, body.begin, body.end, actor=actor, reason=body.reason))
