"""Pages of dead letters and replays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from tasker.errors import TaskerError, UsageError
from tasker.operations.dead_letters import MOST_TASKS, Steered
from tasker.operations.permissions import Permission
from tasker.server.api.operators import may_close, own_entry
from tasker.server.auth.gate import actor_of, caller_of, namespaces_of, needs
from tasker.server.errors import problem_of, status_of
from tasker.server.program import program_of
from tasker.server.routes import require_task
from tasker.server.web.forms import Form
from tasker.server.web.presenters.dead_letters import (
    REMEDIES,
    EntrySearch,
    ReplayCourse,
    ReplaySearch,
    entry_commands,
    failing_steps,
    figures,
    planned,
    rate_of,
)
from tasker.server.web.presenters.tasks import SPANS
from tasker.server.web.rendering import page, redirect, url
from tasker.server.web.route import page_router, sent, typed
from tasker.services.tasks.read import checked
from tasker.services.wording import counted
from tasker.views.dead_letters import REASONS, STATUSES, DeadLetter
from tasker.views.tasks import TaskReport

routes = page_router()
READ = needs(Permission.DLQ_READ, confines=True)
Name = Annotated[str, Query(max_length=255)]
QUEUED, GROUPED, PER_PAGE, HOURS = 100, 50, 50, 24


@routes.get("/dead-letters", **READ)
async def show_queue(request: Request, namespace: Name = "") -> Response:
    """Show pending entries, most urgent first."""
    service = program_of(request).dead_letters
    where = _within(request, namespace)
    caller = caller_of(request)
    counts = caller.may(Permission.DLQ_STATS) and caller.namespaces(Permission.DLQ_STATS) is None
    return page(
        request,
        "dead_letters/queue.html",
        queue=await service.queue(limit=QUEUED, namespaces=where),
        figures=list(figures(await service.stats())) if counts and not namespace else [],
        namespace=namespace,
        most=QUEUED,
    )


@routes.get("/dead-letters/groups", **READ)
async def show_groups(request: Request, namespace: Name = "") -> Response:
    """Show pending entries grouped by failure, largest group first."""
    service, where = program_of(request).dead_letters, _within(request, namespace)
    groups = await service.groups(limit=GROUPED, namespaces=where)
    trends = await service.trend([group.fingerprint for group in groups], hours=HOURS, namespaces=where)
    shown: dict[str, Any] = {"groups": groups, "trends": trends, "hours": HOURS, "most": GROUPED}
    return page(request, "dead_letters/groups.html", namespace=namespace, **shown)


@routes.get("/dead-letters/entries", **READ)
async def list_entries(request: Request, after: Annotated[str, Query(max_length=36)] = "") -> Response:
    """Show all entries, newest first."""
    search, service = EntrySearch.of(request.query_params), program_of(request).dead_letters
    where = namespaces_of(request)
    matches = await service.list(**search.filters, limit=PER_PAGE + 1, after=after or None, namespaces=where)
    last = matches[PER_PAGE - 1].dlq_entry_uuid if len(matches) > PER_PAGE else None
    return page(
        request,
        "dead_letters/entries.html",
        entries=matches[:PER_PAGE],
        search=search,
        statuses=STATUSES,
        reasons=REASONS,
        first=url(request, "dead-letters/entries", **search.words),
        older=last and url(request, "dead-letters/entries", **search.words, after=last),
    )


@routes.get("/dead-letters/stale", **READ)
async def show_staleness(request: Request, namespace: Name = "") -> Response:
    """Show open tasks that are near or beyond the staleness limit."""
    tasks = await program_of(request).dead_letters.staleness(limit=QUEUED, namespaces=_within(request, namespace))
    return page(request, "dead_letters/stale.html", tasks=tasks, namespace=namespace, most=QUEUED)


def _within(request: Request, namespace: str) -> list[str] | None:
    """Return the namespaces to show, or None for all."""
    where = namespaces_of(request)
    if not namespace:
        return None if where is None else sorted(where)
    return [namespace] if where is None or namespace in where else []


CHANGE = needs(Permission.DLQ_UPDATE, confines=True, operates=True)
TYPED = ("status", "notes", "reason")


@routes.get("/dead-letters/entries/{entry}", **needs(Permission.DLQ_READ, confines=True))
async def show_entry(request: Request, entry: str) -> Response:
    return await _page(request, await own_entry(request, entry))


@routes.get("/dead-letters/tasks/{uuid}", **needs(Permission.DLQ_READ))
async def find_entry(request: Request, uuid: str) -> Response:
    """Redirect to the newest entry of a task."""
    entry = await program_of(request).dead_letters.of_task(uuid)
    return redirect(request, f"dead-letters/entries/{entry.dlq_entry_uuid}")


@routes.post("/dead-letters/entries/{entry}/update", **CHANGE)
async def update_entry(request: Request, entry: str) -> Response:
    """Store the result of the investigation and close or reopen the entry. Its task stays unchanged."""

    async def act(form: Form, letter: DeadLetter) -> str:
        status = form.text("status") or letter.resolution_status
        changed = status != letter.resolution_status
        by = actor_of(request) if changed and status != "pending" else None
        await program_of(request).dead_letters.update(
            entry, status=status if changed else None, notes=form.text("notes"), resolved_by=by
        )
        return f"Kept; the entry is {status.replace('_', ' ')}."

    return await _act_or_show_error(request, entry, act)


@routes.post("/dead-letters/entries/{entry}/retry", **needs(Permission.STEPS_RESOLVE, confines=True, operates=True))
async def retry(request: Request, entry: str) -> Response:
    """Run the failed steps of the entry's task again and close the entry."""

    async def act(form: Form, letter: DeadLetter) -> str:
        reason, letters = form.required("reason", "a reason"), program_of(request).dead_letters
        await may_close(request, entry)
        done = await letters.retry(entry, actor=actor_of(request), reason=reason)
        left = f" Left, to be run only once: {', '.join(done.left)}." if done.left else ""
        if not done.reset:
            return f"Nothing of it has failed any more.{left}"
        return f"{counted(len(done.reset), 'step')} will run again, and the entry is closed.{left}"

    return await _act_or_show_error(request, entry, act)


@routes.post("/dead-letters/open", **CHANGE)
async def open_entry(request: Request) -> Response:
    """Add a dead letter for a task as an operator; the task itself continues."""
    form = sent(request)
    task = checked(form.required("task", "a task"))
    await require_task(request, task)
    notes = form.required("notes", "a note on what is suspected")
    reason = form.text("reason", "manual_dlq")
    opened = await program_of(request).dead_letters.open(task, actor=actor_of(request), notes=notes, reason=reason)
    return redirect(request, f"dead-letters/entries/{opened.dlq_entry_uuid}", "The task is on the list; it continues.")


Act = Callable[[Form, DeadLetter], Awaitable[str]]


async def _act_or_show_error(request: Request, entry: str, act: Act) -> Response:
    """Perform the action; if it fails, show the entry again with the error and the typed values."""
    form, dead_letter = sent(request), await own_entry(request, entry)
    try:
        message = await act(form, dead_letter)
    except TaskerError as error:
        status = status_of(request, error)
        if status in (403, 404) or status >= 500:
            raise
        values = {"problem": problem_of(error), "typed": typed(request, *TYPED)}
        return await _page(request, dead_letter, status, **values)
    return redirect(request, f"dead-letters/entries/{entry}", message)


async def _page(request: Request, entry: DeadLetter, status: int = 200, **shown: Any) -> Response:
    return page(
        request,
        "dead_letters/entry.html",
        status,
        entry=entry,
        reason=entry.dlq_reason,
        remedy=REMEDIES[entry.dlq_reason],
        standing=entry.resolution_status,
        steps=failing_steps(entry.task_snapshot),
        report=await _task(request, entry),
        statuses=STATUSES,
        reasons=REASONS,
        commands=entry_commands(entry.dlq_entry_uuid),
        problem=shown.get("problem"),
        typed=shown.get("typed", {}),
    )


async def _task(request: Request, entry: DeadLetter) -> TaskReport | None:
    """Return the current state of the entry's task, or None if it was deleted or the caller may not read it."""
    where = caller_of(request).namespaces(Permission.TASKS_READ)
    if entry.current_state is None or not caller_of(request).may(Permission.TASKS_READ):
        return None
    if where is not None and (entry.task_snapshot or {}).get("namespace") not in where:
        return None
    return await program_of(request).tasks.report(entry.task_uuid)


READS = needs(Permission.DLQ_READ)
RESETS = needs(Permission.STEPS_RESOLVE, operates=True)
STEERED: dict[str, tuple[Steered, str]] = {
    "pause": ("paused", "Paused."),
    "resume": ("running", "Resumed."),
    "cancel": ("cancelled", "Ended; steps already replayed are not affected."),
}
LISTED = 100


@routes.get("/dead-letters/replays", **READS)
async def list_replays(request: Request) -> Response:
    """Show replays, newest first."""
    replays = await program_of(request).replays.list(limit=LISTED)
    return page(request, "dead_letters/replays.html", replays=[ReplayCourse(replay) for replay in replays], most=LISTED)


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
        replay = await program_of(request).replays.begin(group, rate=rate, actor=actor_of(request), reason=reason)
    except TaskerError as error:
        if (status := status_of(request, error)) >= 500:
            raise
        values = {"problem": problem_of(error), "note": form.text("note"), "typed_rate": form.text("rate")}
        return await _plan(request, search, 10.0, status, **values)
    if replay.replay_uuid is None:
        return redirect(request, "dead-letters/replay", "There is nothing left to replay.", **search.words)
    return redirect(request, f"dead-letters/replays/{replay.replay_uuid}", planned(replay, rate))


@routes.get("/dead-letters/replays/{replay}", **READS)
async def show_replay(request: Request, replay: str) -> Response:
    """Show the progress of a replay."""
    service = program_of(request).replays
    progress = await service.get(replay)
    skipped = await service.skipped(replay, limit=LISTED) if progress.skipped else []
    return page(request, "dead_letters/replay.html", course=ReplayCourse(progress), replay=progress, skipped=skipped)


@routes.post("/dead-letters/replays/{replay}/{action}", **RESETS)
async def steer(request: Request, replay: str, action: str) -> Response:
    """Pause, resume or cancel a replay."""
    if action not in STEERED:
        raise UsageError(f"invalid replay action {action}", hint=f"one of {', '.join(STEERED)}")
    state, message = STEERED[action]
    await program_of(request).replays.steer(replay, state)
    return redirect(request, f"dead-letters/replays/{replay}", message)


async def _plan(request: Request, search: ReplaySearch, rate: float, status: int = 200, **shown: Any) -> Response:
    plan = await program_of(request).replays.plan(search.group(datetime.now(UTC))) if search.is_given else None
    return page(
        request,
        "dead_letters/replay_plan.html",
        status,
        search=search,
        plan=plan,
        words=planned(plan, rate) if plan else "",
        rate=shown.get("typed_rate") or f"{rate:g}",
        note=shown.get("note", ""),
        problem=shown.get("problem"),
        command=search.command(rate),
        reasons=REASONS,
        spans=list(SPANS),
        most=MOST_TASKS,
    )
