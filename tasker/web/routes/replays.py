"""Replays of dead letters: preview, start and progress."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from fastapi import Request
from starlette.responses import Response

from tasker.api.failures import status_of
from tasker.api.permissions import Permission, actor_of, needs
from tasker.api.problems import problem_of
from tasker.api.program import program_of
from tasker.errors import TaskerError, UsageError
from tasker.services.dead_letters.records import REASONS
from tasker.web.rendering import page, redirect
from tasker.web.route import page_router, sent
from tasker.web.views.dead_letters import MOST_TASKS, ReplayCourse, ReplaySearch, planned, rate_of
from tasker.web.views.task_search import SPANS

routes = page_router()
READS = needs(Permission.DLQ_READ)
RESETS = needs(Permission.STEPS_RESOLVE, operates=True)
STEERED: dict[str, tuple[Literal["paused", "running", "cancelled"], str]] = {
    "pause": ("paused", "Paused."),
    "resume": ("running", "Resumed."),
    "cancel": ("cancelled", "Ended; steps already replayed are not affected."),
}
LISTED = 100


@routes.get("/dead-letters/replays", **READS)
async def list_replays(request: Request) -> Response:
    """Show replays, newest first."""
    found = await program_of(request).replays.list(limit=LISTED)
    return page(request, "dead_letters/replays.html", replays=[ReplayCourse(each) for each in found], most=LISTED)


@routes.get("/dead-letters/replay", **needs(Permission.STEPS_RESOLVE))
async def preview(request: Request) -> Response:
    """Show the effect of a replay; change nothing."""
    search = ReplaySearch.of(request.query_params)
    return await _plan(request, search, rate_of(request.query_params.get("rate", "")))


@routes.post("/dead-letters/replay", **RESETS)
async def begin(request: Request) -> Response:
    """Start a replay; every sweeping process continues it."""
    form = sent(request)
    search = ReplaySearch.of({name: form.text(name) for name in form.fields})
    try:
        rate, reason = rate_of(form.text("rate")), form.required("note", "a reason")
        if not search.is_given:
            raise UsageError("expected a filter of entries", hint="choose a group, or all")
        group = search.group(datetime.now(UTC))
        found = await program_of(request).replays.begin(group, rate=rate, actor=actor_of(request), reason=reason)
    except TaskerError as error:
        if (status := status_of(request, error)) >= 500:
            raise
        told = {"problem": problem_of(error), "note": form.text("note"), "typed_rate": form.text("rate")}
        return await _plan(request, search, 10.0, status, **told)
    if found.replay_uuid is None:
        return redirect(request, "dead-letters/replay", "There is nothing left to replay.", **search.words)
    return redirect(request, f"dead-letters/replays/{found.replay_uuid}", planned(found, rate))


@routes.get("/dead-letters/replays/{replay}", **READS)
async def show_replay(request: Request, replay: str) -> Response:
    """Show the progress of a replay."""
    service = program_of(request).replays
    found = await service.get(replay)
    skipped = await service.skipped(replay, limit=LISTED) if found.skipped else []
    return page(request, "dead_letters/replay.html", course=ReplayCourse(found), replay=found, skipped=skipped)


@routes.post("/dead-letters/replays/{replay}/{action}", **RESETS)
async def steer(request: Request, replay: str, action: str) -> Response:
    """Pause, resume or cancel a replay."""
    if action not in STEERED:
        raise UsageError(f"invalid replay action {action}", hint=f"one of {', '.join(STEERED)}")
    state, message = STEERED[action]
    await program_of(request).replays.steer(replay, state)
    return redirect(request, f"dead-letters/replays/{replay}", message)


async def _plan(request: Request, search: ReplaySearch, rate: float, status: int = 200, **told: Any) -> Response:
    plan = await program_of(request).replays.plan(search.group(datetime.now(UTC))) if search.is_given else None
    return page(
        request,
        "dead_letters/replay_plan.html",
        status,
        search=search,
        plan=plan,
        words=planned(plan, rate) if plan else "",
        rate=told.get("typed_rate") or f"{rate:g}",
        note=told.get("note", ""),
        problem=told.get("problem"),
        command=search.command(rate),
        reasons=REASONS,
        spans=list(SPANS),
        most=MOST_TASKS,
    )
