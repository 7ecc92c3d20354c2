"""Routes of dead letters and replays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Path, Query, Request

from tasker.errors import UsageError
from tasker.operations.permissions import Permission
from tasker.server.api.tasks import TaskUuid
from tasker.server.auth.gate import actor_of, caller_of, namespaces_of, needs
from tasker.server.covering import redact_failures
from tasker.server.program import program_of
from tasker.server.rendering import Json
from tasker.server.routes import require_task, router
from tasker.server.shapes.dead_letters import (
    BeginReplayRequest,
    DlqEntry,
    DlqInvestigationQueueEntry,
    DlqStats,
    OpenInvestigationRequest,
    StalenessMonitoring,
    SteerReplayRequest,
    UpdateInvestigationRequest,
    UpdateInvestigationResponse,
)
from tasker.server.shapes.operators import RetryRequest
from tasker.server.shapes.problems import refusals
from tasker.services.operators.dead_letters import missing
from tasker.services.operators.replays import FailureSelection, Replay, ReplayPlan
from tasker.services.operators.steps import RetriedSteps
from tasker.views.dead_letters import DeadLetter, FailureGroup

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
    entries = await service.list(**which, fingerprint=fingerprint, limit=limit, offset=offset, namespaces=where)
    return Json(await redacted_entries(request, entries))


@routes.get("/v1/dlq/stats", response_model=list[DlqStats], responses=refusals(), **needs(Permission.DLQ_STATS))
async def get_stats(request: Request) -> Json:
    """Return counts for each reason that has entries."""
    return Json([_named(row) for row in await program_of(request).dead_letters.stats()])


@routes.get(
    "/v1/dlq/investigation-queue",
    response_model=list[DlqInvestigationQueueEntry],
    responses=refusals(),
    **READ,
)
async def get_queue(request: Request, limit: Limit = 100) -> Json:
    """Return pending entries, most urgent first."""
    entries = await program_of(request).dead_letters.queue(limit=limit, namespaces=namespaces_of(request))
    return Json([_named(entry) for entry in entries])


@routes.get("/v1/dlq/staleness", response_model=list[StalenessMonitoring], responses=refusals(), **READ)
async def get_staleness(request: Request, limit: Limit = 100) -> Json:
    """Return open tasks by staleness: stale ones, then warnings, then healthy ones."""
    tasks = await program_of(request).dead_letters.staleness(limit=limit, namespaces=namespaces_of(request))
    return Json([asdict(task) for task in tasks])


@routes.get("/v1/dlq/task/{task_uuid}", response_model=DlqEntry, responses=refusals(404), **needs(Permission.DLQ_READ))
async def get_entry_of_task(request: Request, task_uuid: TaskUuid) -> Json:
    """Return the newest entry of a task, with a snapshot of the task at that time."""
    entry = await program_of(request).dead_letters.of_task(task_uuid)
    return Json((await redacted_entries(request, [entry]))[0])


@routes.get("/v1/dlq/entry/{dlq_entry_uuid}", response_model=DlqEntry, responses=refusals(404), **READ)
async def get_entry(request: Request, dlq_entry_uuid: EntryUuid) -> Json:
    """Return one entry, with a snapshot of its task at that time."""
    entry = await own_entry(request, dlq_entry_uuid)
    return Json((await redacted_entries(request, [entry]))[0])


@routes.get("/v1/dlq/groups", response_model=list[FailureGroup], responses=refusals(), **READ)
async def get_groups(request: Request, limit: Limit = 50) -> Json:
    """Return pending entries grouped by failure, largest group first."""
    failure_groups = await program_of(request).dead_letters.groups(limit=limit, namespaces=namespaces_of(request))
    groups = [asdict(row) for row in failure_groups]
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
    return Json((await redacted_entries(request, [opened]))[0], 201)


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
    entry = await own_entry(request, entry_uuid)
    caller_of(request).require_in(Permission.DLQ_UPDATE, (entry.task_snapshot or {}).get("namespace", ""))


async def own_entry(request: Request, entry_uuid: str) -> DeadLetter:
    """Return an entry of the caller's namespaces. Raises `DeadLetterNotFound` for any other."""
    entry, where = await program_of(request).dead_letters.entry(entry_uuid), namespaces_of(request)
    if where is not None and (entry.task_snapshot or {}).get("namespace") not in where:
        raise missing(entry_uuid)
    return entry


async def redacted_entries(request: Request, letters: Sequence[DeadLetter]) -> Sequence[Mapping[str, Any]]:
    """Return the entries in their published form, redacted for the caller."""
    entries = [_entry(letter) for letter in letters]
    return await redact_failures(request, entries, lambda entry: [(entry["task_snapshot"] or {}).get("namespace", "")])


def _entry(entry: Any) -> dict[str, Any]:
    fields = _named(entry)
    return {**fields, "resolution_timestamp": fields["resolved_at"]}


def _named(entry: Any) -> dict[str, Any]:
    """Return the fields with reason and status in the published words."""
    words = ("dlq_reason", "resolution_status")
    fields = asdict(entry)
    return {name: _published(value) if name in words else value for name, value in fields.items()}


def _published(word: str) -> str:
    return "".join(part.capitalize() for part in word.split("_"))


READS = needs(Permission.DLQ_READ)
RESETS = needs(Permission.STEPS_RESOLVE, operates=True)
BEGINS = needs(Permission.STEPS_RESOLVE, operates=True, unless="dry_run")
WHICH = ("fingerprint", "namespace", "template", "reason", "since")
ReplayUuid = Annotated[str, Path(description="The replay's identifier.", max_length=64)]


@routes.get("/v1/dlq/replays", response_model=list[Replay], responses=refusals(), **READS)
async def list_replays(request: Request, limit: Annotated[int, Query(ge=1, le=500)] = 50) -> Json:
    """Return replays, newest first."""
    return Json(await program_of(request).replays.list(limit=limit))


@routes.get("/v1/dlq/replays/{replay_uuid}", response_model=Replay, responses=refusals(404), **READS)
async def get_replay(request: Request, replay_uuid: ReplayUuid) -> Json:
    """Return a replay with its progress."""
    return Json(await program_of(request).replays.get(replay_uuid))


@routes.post("/v1/dlq/replays", response_model=ReplayPlan, responses=refusals(), **BEGINS)
async def begin_replay(request: Request, body: BeginReplayRequest) -> Json:
    """Run the failed steps of a group of entries again, at a set number of tasks per second. `dry_run` changes nothing.

    The answer has no `replay_uuid` if there is nothing to replay.
    """
    which: dict[str, Any] = {name: getattr(body, name) for name in WHICH}
    if not body.all and not any(which.values()):
        hint = f"one of {', '.join(WHICH)}, or all: true"
        raise UsageError("expected a filter of entries", hint=hint)
    service, group = program_of(request).replays, FailureSelection(**which, limit=body.limit)
    if body.dry_run:
        return Json(await service.plan(group))
    actor = actor_of(request, body.actor)
    return Json(await service.begin(group, rate=body.rate_per_second, actor=actor, reason=body.note))


@routes.patch("/v1/dlq/replays/{replay_uuid}", response_model=Replay, responses=refusals(404), **RESETS)
async def steer_replay(request: Request, replay_uuid: ReplayUuid, body: SteerReplayRequest) -> Json:
    """Pause, resume or cancel a replay; replayed tasks stay replayed. Refused if it has ended."""
    return Json(await program_of(request).replays.steer(replay_uuid, body.state))
