"""Dead letters: tasks that need an operator. Only `retry` changes a task and its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Path, Query, Request

from tasker.api.covering import redact_failures
from tasker.api.json_response import Json
from tasker.api.permissions import Permission, actor_of, caller_of, namespaces_of, needs
from tasker.api.routes.route import program_of, require_task, router
from tasker.api.routes.tasks import TaskUuid
from tasker.api.shapes.dead_letters import (
    DlqEntry,
    DlqInvestigationQueueEntry,
    DlqStats,
    OpenInvestigationRequest,
    StalenessMonitoring,
    UpdateInvestigationRequest,
    UpdateInvestigationResponse,
)
from tasker.api.shapes.observed import RetryRequest
from tasker.api.shapes.problems import refusals
from tasker.services.dead_letters.entries import missing
from tasker.services.dead_letters.records import DeadLetter, FailureGroup
from tasker.services.operators.steps import RetriedSteps

routes = router("dlq")
READ = needs(Permission.DLQ_READ, confines=True)
Limit = Annotated[int, Query(ge=1, le=500)]
Word = Annotated[str | None, Query(max_length=64)]
Filter = Annotated[str | None, Query(max_length=255)]
EntryUuid = Annotated[str, Path(description="The entry's identifier.")]


@routes.get("/v1/dlq", response_model=list[DlqEntry], responses=refusals(), **READ)
async def list_entries(
    request: Request,
    resolution_status: Word = None,
    reason: Word = None,
    namespace: Filter = None,
    template: Filter = None,
    fingerprint: Word = None,
    limit: Limit = 50,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> Json:
    """Return entries, newest first."""
    which = {"status": resolution_status, "reason": reason, "namespace": namespace, "template": template}
    service = program_of(request).dead_letters
    where = namespaces_of(request)
    found = await service.list(**which, fingerprint=fingerprint, limit=limit, offset=offset, namespaces=where)
    return Json(await covered_entries(request, found))


@routes.get("/v1/dlq/stats", response_model=list[DlqStats], responses=refusals(), **needs(Permission.DLQ_STATS))
async def get_stats(request: Request) -> Json:
    """Return counts for each reason that has entries."""
    return Json([_named(each) for each in await program_of(request).dead_letters.stats()])


@routes.get(
    "/v1/dlq/investigation-queue",
    response_model=list[DlqInvestigationQueueEntry],
    responses=refusals(),
    **READ,
)
async def get_queue(request: Request, limit: Limit = 100) -> Json:
    """Return pending entries, most urgent first."""
    found = await program_of(request).dead_letters.queue(limit=limit, namespaces=namespaces_of(request))
    return Json([_named(each) for each in found])


@routes.get("/v1/dlq/staleness", response_model=list[StalenessMonitoring], responses=refusals(), **READ)
async def get_staleness(request: Request, limit: Limit = 100) -> Json:
    """Return open tasks by staleness: stale ones, then warnings, then healthy ones."""
    found = await program_of(request).dead_letters.staleness(limit=limit, namespaces=namespaces_of(request))
    return Json([asdict(each) for each in found])


@routes.get("/v1/dlq/task/{task_uuid}", response_model=DlqEntry, responses=refusals(404), **needs(Permission.DLQ_READ))
async def get_entry_of_task(request: Request, task_uuid: TaskUuid) -> Json:
    """Return the newest entry of a task, with a snapshot of the task at that time."""
    found = await program_of(request).dead_letters.of_task(task_uuid)
    return Json((await covered_entries(request, [found]))[0])


@routes.get("/v1/dlq/entry/{dlq_entry_uuid}", response_model=DlqEntry, responses=refusals(404), **READ)
async def get_entry(request: Request, dlq_entry_uuid: EntryUuid) -> Json:
    """Return one entry, with a snapshot of its task at that time."""
    found = await own_entry(request, dlq_entry_uuid)
    return Json((await covered_entries(request, [found]))[0])


@routes.get("/v1/dlq/groups", response_model=list[FailureGroup], responses=refusals(), **READ)
async def get_groups(request: Request, limit: Limit = 50) -> Json:
    """Return pending entries grouped by failure, largest group first."""
    found = await program_of(request).dead_letters.groups(limit=limit, namespaces=namespaces_of(request))
    groups = [asdict(each) for each in found]
    return Json(await redact_failures(request, groups, lambda group: group["namespaces"]))


@routes.post(
    "/v1/dlq",
    response_model=DlqEntry,
    status_code=201,
    responses=refusals(404),
    **needs(Permission.DLQ_UPDATE, confines=True, operates=True),
)
async def open_entry(request: Request, body: OpenInvestigationRequest) -> Json:
    """Add a dead letter for a task as an operator; the task itself continues. 400 if it already has a pending entry."""
    await require_task(request, body.task_uuid)
    opened = await program_of(request).dead_letters.open(
        body.task_uuid,
        actor=actor_of(request, body.actor),
        notes=body.notes,
        reason=body.reason,
        metadata=body.metadata,
    )
    return Json((await covered_entries(request, [opened]))[0], 201)


@routes.patch(
    "/v1/dlq/entry/{dlq_entry_uuid}",
    response_model=UpdateInvestigationResponse,
    responses=refusals(404),
    **needs(Permission.DLQ_UPDATE, confines=True, operates=True),
)
async def update_entry(
    request: Request,
    dlq_entry_uuid: EntryUuid,
    body: UpdateInvestigationRequest,
) -> Json:
    """Store the result of the investigation and close the entry. Its task stays unchanged."""
    if namespaces_of(request) is not None:
        await own_entry(request, dlq_entry_uuid)
    updated = await program_of(request).dead_letters.update(
        dlq_entry_uuid,
        status=body.resolution_status,
        notes=body.resolution_notes,
        by=actor_of(request, body.resolved_by) if body.resolution_status or body.resolved_by else None,
        metadata=body.metadata,
    )
    message = f"the investigation is {updated.resolution_status}"
    return Json({"success": True, "message": message, "dlq_entry_uuid": updated.dlq_entry_uuid})


@routes.post(
    "/v1/dlq/entry/{dlq_entry_uuid}/retry",
    response_model=RetriedSteps,
    responses=refusals(404),
    **needs(Permission.STEPS_RESOLVE, confines=True, operates=True),
)
async def retry_entry(request: Request, dlq_entry_uuid: EntryUuid, body: RetryRequest) -> Json:
    """Run every failed step of the entry's task again and close the entry, all or nothing. Also needs `dlq:update`.

    If no step runs again, the entry stays unchanged. 400 for a cancelled task.
    """
    await may_close(request, dlq_entry_uuid)
    actor = actor_of(request, body.actor)
    return Json(await program_of(request).dead_letters.retry(dlq_entry_uuid, actor=actor, reason=body.reason))


async def may_close(request: Request, entry_uuid: str) -> None:
    """Check that the caller may close this entry. Raises `NotPermitted` otherwise, and the errors of `own_entry`."""
    found = await own_entry(request, entry_uuid)
    caller_of(request).require_in(Permission.DLQ_UPDATE, (found.task_snapshot or {}).get("namespace", ""))


async def own_entry(request: Request, entry_uuid: str) -> DeadLetter:
    """Return an entry of the caller's namespaces. Raises `DeadLetterNotFound` for any other."""
    found, where = await program_of(request).dead_letters.entry(entry_uuid), namespaces_of(request)
    if where is not None and (found.task_snapshot or {}).get("namespace") not in where:
        raise missing(entry_uuid)
    return found


async def covered_entries(request: Request, found: Sequence[DeadLetter]) -> Sequence[Mapping[str, Any]]:
    """Return the entries in their published form, redacted for the caller."""
    entries = [_entry(each) for each in found]
    return await redact_failures(request, entries, lambda entry: [(entry["task_snapshot"] or {}).get("namespace", "")])


def _entry(each: Any) -> dict[str, Any]:
    found = _named(each)
    return {**found, "resolution_timestamp": found["resolved_at"]}


def _named(each: Any) -> dict[str, Any]:
    """Return the fields with reason and status in the published words."""
    words = ("dlq_reason", "resolution_status")
    found = asdict(each)
    return {name: _published(value) if name in words else value for name, value in found.items()}


def _published(word: str) -> str:
    return "".join(part.capitalize() for part in word.split("_"))
