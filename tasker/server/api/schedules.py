"""Routes of schedules and their fires."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fastapi import Request

from tasker.operations.schedules import ScheduleOperations
from tasker.server.auth.gate import actor_of, namespaces_of, require_namespace
from tasker.server.operation_routes import WithHeaders, serves
from tasker.server.program import program_of
from tasker.server.routes import location_of, router
from tasker.views.schedules import (
    Backfill,
    Schedule,
    ScheduleChange,
    ScheduleFire,
    TriggeredTask,
    UpcomingFire,
    parts_of,
)

routes = router("schedules")


@serves(routes, ScheduleOperations.list_schedules)
async def list_schedules(request: Request, **which: Any) -> Sequence[Schedule]:
    return await program_of(request).schedules.list(**which, namespaces=namespaces_of(request))


@serves(routes, ScheduleOperations.create_schedule)
async def create_schedule(request: Request, schedule: str, actor: str | None, **how: Any) -> Schedule:
    require_namespace(request, parts_of(schedule)[0])
    return await program_of(request).schedules.create(schedule, actor=actor_of(request, actor), **how)


@serves(routes, ScheduleOperations.get_schedule)
async def get_schedule(request: Request, schedule: str) -> Schedule:
    return await program_of(request).schedules.get(schedule)


@serves(routes, ScheduleOperations.delete_schedule)
async def delete_schedule(request: Request, schedule: str, actor: str | None, reason: str) -> ScheduleChange:
    await program_of(request).schedules.delete(schedule, actor=actor_of(request, actor), reason=reason)
    return ScheduleChange(schedule, True)


@serves(routes, ScheduleOperations.list_upcoming_fires)
async def list_upcoming_fires(request: Request, schedule: str, **which: Any) -> Sequence[UpcomingFire]:
    return await program_of(request).schedules.upcoming(schedule, **which)


@serves(routes, ScheduleOperations.list_fires)
async def list_fires(request: Request, schedule: str, **which: Any) -> Sequence[ScheduleFire]:
    return await program_of(request).schedules.fires(schedule, **which)


@serves(routes, ScheduleOperations.pause_schedule)
async def pause_schedule(request: Request, schedule: str, actor: str | None, reason: str) -> ScheduleChange:
    service = program_of(request).schedules
    return ScheduleChange(schedule, await service.pause(schedule, actor=actor_of(request, actor), reason=reason))


@serves(routes, ScheduleOperations.resume_schedule)
async def resume_schedule(request: Request, schedule: str, actor: str | None, reason: str) -> ScheduleChange:
    service = program_of(request).schedules
    return ScheduleChange(schedule, await service.resume(schedule, actor=actor_of(request, actor), reason=reason))


@serves(routes, ScheduleOperations.trigger_schedule)
async def trigger_schedule(
    request: Request, schedule: str, actor: str | None, reason: str
) -> WithHeaders[TriggeredTask]:
    task = await program_of(request).schedules.trigger(schedule, actor=actor_of(request, actor), reason=reason)
    return WithHeaders(TriggeredTask(task), location_of(request, task))


@serves(routes, ScheduleOperations.backfill_schedule)
async def backfill_schedule(
    request: Request, schedule: str, begin: datetime, end: datetime, dry_run: bool, actor: str | None, reason: str
) -> Backfill:
    service = program_of(request).schedules
    if dry_run:
        return await service.plan_backfill(schedule, begin, end)
    return await service.backfill(schedule, begin, end, actor=actor_of(request, actor), reason=reason)
