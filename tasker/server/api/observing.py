"""Routes for operators: task lists, reports, history, logs and the state of the fleet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from fastapi import Request

from tasker.operations.fleet import FleetOperations
from tasker.operations.steps import StepOperations
from tasker.operations.tasks import TaskOperations
from tasker.server.auth.gate import actor_of, namespaces_of, tenants_of
from tasker.server.operation_routes import WithHeaders, serves
from tasker.server.program import program_of
from tasker.server.routes import location_of, router
from tasker.services.operators.reruns import where_to_begin
from tasker.views.children import TaskFamily
from tasker.views.fleet import DoctorReport
from tasker.views.overview import Overview
from tasker.views.progress import TaskProgress
from tasker.views.steps import Attempt, RetriedSteps, StartedRerun, StepLogLine
from tasker.views.task_lists import RefusedMessage, TaskSummary, TransitionDetail
from tasker.views.tasks import TaskReport

routes = router("operators")


@serves(routes, TaskOperations.list_task_summaries)
async def list_task_summaries(request: Request, **which: Any) -> Sequence[TaskSummary]:
    return await program_of(request).tasks.list(**which, namespaces=namespaces_of(request), tenants=tenants_of(request))


@serves(routes, TaskOperations.list_identifiers)
async def list_identifiers(request: Request, prefix: str, limit: int) -> Sequence[str]:
    tasks, where = program_of(request).tasks, namespaces_of(request)
    return await tasks.starting_with(prefix, limit=limit, namespaces=where, tenants=tenants_of(request))


@serves(routes, TaskOperations.get_report_page)
async def get_report(request: Request, task_uuid: str, limit: int, offset: int) -> TaskReport:
    report = await program_of(request).tasks.report(task_uuid, limit=limit, offset=offset)
    return report


@serves(routes, TaskOperations.get_task_children)
async def get_children(request: Request, task_uuid: str, **which: Any) -> TaskFamily:
    tasks, where = program_of(request).tasks, namespaces_of(request)
    return await tasks.children(task_uuid, **which, namespaces=where, tenants=tenants_of(request))


@serves(routes, TaskOperations.get_history_page)
async def get_history(request: Request, task_uuid: str, limit: int, offset: int) -> Sequence[TransitionDetail]:
    history = await program_of(request).tasks.history(task_uuid, limit=limit, offset=offset)
    return history


@serves(routes, TaskOperations.get_task_progress)
async def get_progress(request: Request, task_uuid: str, since: datetime | None) -> TaskProgress:
    return await program_of(request).tasks.progress(task_uuid, since)


@serves(routes, TaskOperations.get_task_logs)
async def get_logs(request: Request, task_uuid: str, **which: Any) -> Sequence[StepLogLine]:
    return await program_of(request).tasks.logs(task_uuid, **which)


@serves(routes, TaskOperations.get_task_template)
async def get_template_of_task(request: Request, task_uuid: str) -> Mapping[str, Any]:
    return await program_of(request).views.template(task_uuid)


@serves(routes, StepOperations.get_task_audit)
async def get_audit_of_task(request: Request, task_uuid: str) -> Sequence[Attempt]:
    return await program_of(request).views.audit(task_uuid)


@serves(routes, StepOperations.retry_task)
async def retry_task(request: Request, task_uuid: str, reason: str, actor: str | None) -> RetriedSteps:
    return await program_of(request).steps.retry(task_uuid, actor=actor_of(request, actor), reason=reason)


@serves(routes, TaskOperations.rerun_task)
async def rerun_task(
    request: Request, task_uuid: str, step: str | None, actor: str | None, **how: Any
) -> WithHeaders[StartedRerun]:
    program = program_of(request)
    step = step or where_to_begin(await program.tasks.report(task_uuid))
    begun = await program.reruns.start(task_uuid, step, actor=actor_of(request, actor), **how)
    return WithHeaders(begun, location_of(request, begun.task_uuid))


@serves(routes, TaskOperations.list_refused_messages)
async def list_refused_messages(request: Request, queue: str | None, limit: int) -> Sequence[RefusedMessage]:
    return await program_of(request).tasks.refused(queue=queue, limit=limit)


@serves(routes, FleetOperations.overview)
async def get_overview(request: Request) -> Overview:
    return await program_of(request).fleet.overview()


@serves(routes, FleetOperations.doctor)
async def get_findings(request: Request) -> DoctorReport:
    return DoctorReport(await program_of(request).doctor.findings())
