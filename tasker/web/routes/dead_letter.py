"""Page of one dead letter: the snapshot of its task, the task's current state and the investigation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request
from starlette.responses import Response

from tasker.api.failures import status_of
from tasker.api.permissions import Permission, actor_of, caller_of, needs
from tasker.api.problems import problem_of
from tasker.api.program import program_of
from tasker.api.routes.dead_letters import covered_entries, may_close, own_entry
from tasker.api.routes.route import require_task
from tasker.errors import TaskerError
from tasker.services.dead_letters.records import REASONS, STATUSES, DeadLetter
from tasker.services.reports import TaskReport
from tasker.services.tasks import checked
from tasker.services.wording import counted
from tasker.web.forms import Form
from tasker.web.rendering import page, redirect
from tasker.web.route import page_router, sent, typed
from tasker.web.routes.task import covered_report
from tasker.web.views.dead_letters import REMEDIES, entry_commands, failing_steps

routes = page_router()
CHANGE = needs(Permission.DLQ_UPDATE, confines=True, operates=True)
TYPED = ("status", "notes", "reason")


@routes.get("/dead-letters/entries/{entry}", **needs(Permission.DLQ_READ, confines=True))
async def show_entry(request: Request, entry: str) -> Response:
    return await _page(request, await own_entry(request, entry))


@routes.get("/dead-letters/tasks/{uuid}", **needs(Permission.DLQ_READ))
async def find_entry(request: Request, uuid: str) -> Response:
    """Redirect to the newest entry of a task."""
    found = await program_of(request).dead_letters.of_task(uuid)
    return redirect(request, f"dead-letters/entries/{found.dlq_entry_uuid}")


@routes.post("/dead-letters/entries/{entry}/update", **CHANGE)
async def update_entry(request: Request, entry: str) -> Response:
    """Store the result of the investigation and close or reopen the entry. Its task stays unchanged."""

    async def act(form: Form, found: DeadLetter) -> str:
        status = form.text("status") or found.resolution_status
        changed = status != found.resolution_status
        by = actor_of(request) if changed and status != "pending" else None
        await program_of(request).dead_letters.update(
            entry, status=status if changed else None, notes=form.text("notes"), by=by
        )
        return f"Kept; the entry is {status.replace('_', ' ')}."

    return await _done_or_told(request, entry, act)


@routes.post("/dead-letters/entries/{entry}/retry", **needs(Permission.STEPS_RESOLVE, confines=True, operates=True))
async def retry(request: Request, entry: str) -> Response:
    """Run the failed steps of the entry's task again and close the entry."""

    async def act(form: Form, found: DeadLetter) -> str:
        reason, letters = form.required("reason", "a reason"), program_of(request).dead_letters
        await may_close(request, entry)
        done = await letters.retry(entry, actor=actor_of(request), reason=reason)
        left = f" Left, to be run only once: {', '.join(done.left)}." if done.left else ""
        if not done.reset:
            return f"Nothing of it has failed any more.{left}"
        return f"{counted(len(done.reset), 'step')} will run again, and the entry is closed.{left}"

    return await _done_or_told(request, entry, act)


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


async def _done_or_told(request: Request, entry: str, act: Act) -> Response:
    """Perform the action; if it fails, show the entry again with the error and the typed values."""
    form, found = sent(request), await own_entry(request, entry)
    try:
        message = await act(form, found)
    except TaskerError as error:
        status = status_of(request, error)
        if status in (403, 404) or status >= 500:
            raise
        told = {"problem": problem_of(error), "typed": typed(request, *TYPED)}
        return await _page(request, found, status, **told)
    return redirect(request, f"dead-letters/entries/{entry}", message)


async def _page(request: Request, found: DeadLetter, status: int = 200, **told: Any) -> Response:
    (entry,) = await covered_entries(request, [found])
    return page(
        request,
        "dead_letters/entry.html",
        status,
        entry=entry,
        reason=found.dlq_reason,
        remedy=REMEDIES[found.dlq_reason],
        standing=found.resolution_status,
        steps=failing_steps(entry["task_snapshot"]),
        report=await _task(request, found),
        statuses=STATUSES,
        reasons=REASONS,
        commands=entry_commands(found.dlq_entry_uuid),
        problem=told.get("problem"),
        typed=told.get("typed", {}),
    )


async def _task(request: Request, found: DeadLetter) -> TaskReport | None:
    """Return the current state of the entry's task, or None if it was deleted or the caller may not read it."""
    where = caller_of(request).namespaces(Permission.TASKS_READ)
    if found.current_state is None or not caller_of(request).may(Permission.TASKS_READ):
        return None
    if where is not None and (found.task_snapshot or {}).get("namespace") not in where:
        return None
    return await covered_report(request, found.task_uuid)
