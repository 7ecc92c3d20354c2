"""Routes of dead letters and replays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import Request

from tasker.errors import UsageError
from tasker.operations.dead_letters import DeadLetterOperations, FailureSelection, Steered
from tasker.operations.permissions import Permission
from tasker.server.auth.gate import actor_of, caller_of, namespaces_of
from tasker.server.operation_routes import serves
from tasker.server.program import program_of
from tasker.server.routes import require_task, router
from tasker.services.operators.dead_letters import missing
from tasker.views.dead_letters import (
    DeadLetter,
    FailureGroup,
    InvestigationUpdated,
    QueuedInvestigation,
    ReasonStats,
    Replay,
    ReplayPlan,
    TaskHealth,
)
from tasker.views.steps import RetriedSteps

routes = router("dlq")


@serves(routes, DeadLetterOperations.list_dead_letters)
async def list_entries(request: Request, **which: Any) -> Sequence[DeadLetter]:
    return await program_of(request).dead_letters.list(**which, namespaces=namespaces_of(request))


@serves(routes, DeadLetterOperations.dead_letter_stats)
async def get_stats(request: Request) -> Sequence[ReasonStats]:
    return await program_of(request).dead_letters.stats()


@serves(routes, DeadLetterOperations.investigation_queue)
async def get_queue(request: Request, limit: int) -> Sequence[QueuedInvestigation]:
    return await program_of(request).dead_letters.queue(limit=limit, namespaces=namespaces_of(request))


@serves(routes, DeadLetterOperations.staleness)
async def get_staleness(request: Request, limit: int) -> Sequence[TaskHealth]:
    return await program_of(request).dead_letters.staleness(limit=limit, namespaces=namespaces_of(request))


@serves(routes, DeadLetterOperations.get_dead_letter)
async def get_entry_of_task(request: Request, task_uuid: str) -> DeadLetter:
    return await program_of(request).dead_letters.of_task(task_uuid)


@serves(routes, DeadLetterOperations.get_dead_letter_entry)
async def get_entry(request: Request, entry_uuid: str) -> DeadLetter:
    return await own_entry(request, entry_uuid)


@serves(routes, DeadLetterOperations.dead_letter_groups)
async def get_groups(request: Request, limit: int) -> Sequence[FailureGroup]:
    return await program_of(request).dead_letters.groups(limit=limit, namespaces=namespaces_of(request))


@serves(routes, DeadLetterOperations.open_dead_letter)
async def open_entry(request: Request, task_uuid: str, actor: str | None, **finding: Any) -> DeadLetter:
    await require_task(request, task_uuid)
    service = program_of(request).dead_letters
    return await service.open(task_uuid, actor=actor_of(request, actor), **finding)


@serves(routes, DeadLetterOperations.update_dead_letter)
async def update_entry(
    request: Request, entry_uuid: str, status: str | None, resolved_by: str | None, **findings: Any
) -> InvestigationUpdated:
    if namespaces_of(request) is not None:
        await own_entry(request, entry_uuid)
    by = actor_of(request, resolved_by) if status or resolved_by else None
    service = program_of(request).dead_letters
    updated = await service.update(entry_uuid, status=status, resolved_by=by, **findings)
    return InvestigationUpdated(True, f"the investigation is {updated.resolution_status}", updated.dlq_entry_uuid)


@serves(routes, DeadLetterOperations.retry_dead_letter)
async def retry_entry(request: Request, entry_uuid: str, reason: str, actor: str | None) -> RetriedSteps:
    await may_close(request, entry_uuid)
    service = program_of(request).dead_letters
    return await service.retry(entry_uuid, actor=actor_of(request, actor), reason=reason)


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


@serves(routes, DeadLetterOperations.list_replays)
async def list_replays(request: Request, limit: int) -> Sequence[Replay]:
    return await program_of(request).replays.list(limit=limit)


@serves(routes, DeadLetterOperations.get_replay)
async def get_replay(request: Request, replay_uuid: str) -> Replay:
    return await program_of(request).replays.get(replay_uuid)


@serves(routes, DeadLetterOperations.begin_replay)
async def begin_replay(
    request: Request, group: FailureSelection, all: bool, dry_run: bool, actor: str | None, **how: Any
) -> ReplayPlan:
    if not all and not group.is_limited:
        hint = "one of fingerprint, namespace, template, reason, since, or all: true"
        raise UsageError("expected a filter of entries", hint=hint)
    service = program_of(request).replays
    return await (service.plan(group) if dry_run else service.begin(group, actor=actor_of(request, actor), **how))


@serves(routes, DeadLetterOperations.steer_replay)
async def steer_replay(request: Request, replay_uuid: str, state: Steered) -> Replay:
    return await program_of(request).replays.steer(replay_uuid, state)
