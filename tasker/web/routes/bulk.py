"""Bulk actions: a preview, then one portion of tasks per request until all are processed.

The remaining tasks are stored in the form of the page, not in the server: the server may be stopped or restarted and
the page closed at any time, and the action continues where it was. Each completed action is recorded in the audit log
like any other.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from tasker.api.failures import status_of
from tasker.api.permissions import Permission, actor_of, caller_of, namespaces_of, needs
from tasker.api.program import program_of
from tasker.api.routes.route import require_task
from tasker.errors import NotPermitted, TaskerError, UsageError
from tasker.services.tasks import checked
from tasker.web.bulk_actions import ACTIONS, MOST_TASKS, PORTION, Action, BulkProgress, BulkRequest, Outcome
from tasker.web.forms import Form
from tasker.web.rendering import page
from tasker.web.route import page_router, sent
from tasker.web.routes.tasks import which_tasks
from tasker.web.views.task_search import Search

routes = page_router()
LISTED = needs(Permission.TASKS_LIST, confines=True)


@routes.get("/tasks/bulk", **LISTED)
async def preview(
    request: Request,
    action: Annotated[str, Query(max_length=20)] = "",
    task: Annotated[list[str], Query(max_length=200)] = [],  # noqa: B006
    all_: Annotated[str, Query(alias="all", max_length=3)] = "",
) -> Response:
    """Show the action and the tasks that it would change; change nothing."""
    wanted = _wanted(request, action)
    tasks = await _matching(request) if all_ else [checked(each) for each in task]
    if not tasks:
        raise UsageError("no task is chosen", hint="choose some in the list, or all that match")
    suits = [each for each in await _views(request, tasks) if wanted.suits(each)]
    return page(
        request,
        "bulk.html",
        wanted=wanted,
        tasks=suits,
        others=len(tasks) - len(suits),
        most=MOST_TASKS if len(tasks) == MOST_TASKS else None,
        progress=None,
        problem=None,
    )


@routes.post("/tasks/bulk", **needs(Permission.TASKS_LIST, confines=True, operates=True, several=True))
async def go_on(request: Request) -> Response:
    """Process the next tasks and show the progress; with scripts the page continues by itself."""
    form = sent(request)
    wanted, reason = _wanted(request, form.text("action")), form.required("reason", "a reason")
    left = [checked(each) for each in form.text("left").split()]
    if len(left) > MOST_TASKS:
        raise UsageError(f"{len(left)} tasks are more than {MOST_TASKS} at once", hint="choose fewer")
    done = [await _one(request, wanted, each, reason) for each in left[:PORTION]]
    progress = _progress(form).plus(done, left[PORTION:])
    return page(
        request,
        "bulk.html",
        wanted=wanted,
        tasks=[],
        others=0,
        most=None,
        progress=progress,
        reason=reason,
        problem=None,
    )


def _wanted(request: Request, action: str) -> BulkRequest:
    """Return the requested action. Raises `UsageError` if it is unknown, `NotPermitted` if the caller has no permission
    for it."""
    if action not in ACTIONS:
        raise UsageError(f"unknown action {action!r} for many tasks", hint=f"one of {', '.join(ACTIONS)}")
    wanted = ACTIONS[Action(action)]
    caller_of(request).require(wanted.permission)
    return wanted


async def _matching(request: Request) -> list[str]:
    search = Search.read(request.query_params)
    which = await which_tasks(request, search)
    found = await program_of(request).views.page(which, limit=MOST_TASKS, oldest_first=search.oldest_first)
    return [each["task_uuid"] for each in found]


async def _views(request: Request, tasks: list[str]) -> list[dict[str, Any]]:
    """Return the tasks that exist and that the caller may see."""
    where = namespaces_of(request)
    found = await program_of(request).views.some(tasks)
    return [each for each in found if where is None or each["namespace"] in where]


async def _one(request: Request, wanted: BulkRequest, task: str, reason: str) -> Outcome:
    program, actor = program_of(request), actor_of(request)
    try:
        await require_task(request, task)
        caller_of(request).require_in(wanted.permission, await program.views.namespace(task))
        return Outcome(task, await wanted.act(program, task, actor, reason), done=True)
    except TaskerError as error:
        if status_of(request, error) >= 500 and not isinstance(error, NotPermitted):
            raise
        return Outcome(task, error.message, done=False)


def _progress(form: Form) -> BulkProgress:
    """Return the progress stored in the submitted page."""
    numbers = [form.text(name, "0") for name in ("total", "succeeded", "refused")]
    if not all(each.isdecimal() and len(each) <= 6 for each in numbers):
        raise UsageError("the form is invalid", hint="begin again from the list")
    total, succeeded, refused = map(int, numbers)
    return BulkProgress(total, succeeded, refused, form.text("last_refused"), [], [])
