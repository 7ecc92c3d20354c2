"""Replays of dead letters with the same failure: failed steps run again at a set rate, driven by every sweeping
process."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Request

from tasker.api.json_response import Json
from tasker.api.permissions import Permission, actor_of, needs
from tasker.api.routes.route import program_of, router
from tasker.api.shapes.dead_letters import BeginReplayRequest, SteerReplayRequest
from tasker.api.shapes.problems import refusals
from tasker.errors import UsageError
from tasker.services.dead_letters.replays import FailureSelection, Replay, ReplayPlan

routes = router("dlq")
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
