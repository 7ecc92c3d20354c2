"""Pages that do the same to many tasks.

The remaining tasks are stored in the form of the page, not in the server: the server may be stopped or restarted and
the page closed at any time, and the action continues where it was. Each completed action is recorded in the audit log
like any other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import StrEnum
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from tasker.dataclasses import dataclass
from tasker.errors import NotPermitted, StateMachineError, TaskerError, UsageError
from tasker.operations.permissions import Permission
from tasker.server.auth.gate import actor_of, caller_of, namespaces_of, needs
from tasker.server.errors import status_of
from tasker.server.program import ServerServices, program_of
from tasker.server.routes import require_task
from tasker.server.web.forms import Form
from tasker.server.web.pages.tasks import which_tasks
from tasker.server.web.presenters.tasks import Search
from tasker.server.web.rendering import page
from tasker.server.web.route import page_router, sent
from tasker.services.operators.reruns import where_to_begin
from tasker.services.tasks.read import checked
from tasker.services.wording import counted
from tasker.views.tasks import Task

MOST_TASKS = 1000
"""Maximum number of tasks of one bulk action; further ones need another bulk action."""
PORTION = 25
"""Number of tasks processed per request."""


class Action(StrEnum):
    RETRY = "retry"
    RERUN = "rerun"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class BulkRequest:
    """Action with its texts; `suits` returns whether it applies to a task."""

    action: Action
    title: str
    effect: str
    permission: Permission
    suits: Callable[[Task], bool]
    act: Callable[[ServerServices, str, str, str], Awaitable[str]]
    danger: bool = False

    def command(self, tasks: Iterable[str]) -> str:
        """Return the shell command that does the same to these tasks one by one; a refused task does not stop the
        others."""
        return f"echo {' '.join(tasks)} | xargs -n 1 tasker task {self.action} --reason '...'"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of the action on one task."""

    task: str
    words: str
    done: bool


@dataclass(frozen=True, slots=True)
class BulkProgress:
    """Progress of a bulk action; `latest` are the outcomes of the last portion, `left` the remaining tasks."""

    total: int
    succeeded: int
    refused: int
    last_refused: str
    latest: Sequence[Outcome]
    left: Sequence[str]

    def plus(self, outcomes: Sequence[Outcome], left: Sequence[str]) -> BulkProgress:
        """Return the progress after one more portion."""
        refused = [outcome for outcome in outcomes if not outcome.done]
        last_refused = f"{refused[-1].task}: {refused[-1].words}" if refused else self.last_refused
        done = len(outcomes) - len(refused)
        total = self.total or len(outcomes) + len(left)
        return BulkProgress(total, self.succeeded + done, self.refused + len(refused), last_refused, outcomes, left)

    @property
    def dealt_with(self) -> int:
        """Number of processed tasks."""
        return self.succeeded + self.refused


async def retry(program: ServerServices, task: str, actor: str, reason: str) -> str:
    """Run every failed step of a task again. Raises `StateMachineError` if no step has failed."""
    result = await program.steps.retry(task, actor=actor, reason=reason)
    if not result.reset:
        raise StateMachineError("it has no failed steps")
    return f"{counted(len(result.reset), 'step')} will run again"


async def cancel(program: ServerServices, task: str, actor: str, reason: str) -> str:
    await program.tasks.cancel(task, actor=actor, reason=reason)
    return "cancelled"


async def rerun(program: ServerServices, task: str, actor: str, reason: str) -> str:
    """Run a task again as a new one, from its first failed step or, if none failed, from its first step."""
    first = where_to_begin(await program.tasks.report(task))
    result = await program.reruns.start(task, first, actor=actor, reason=reason)
    return f"again from {first}: {result.task_uuid}"


def _has_failed(task: Task) -> bool:
    return bool(task.failed_steps) and task.status != "cancelled"


def _has_ended(task: Task) -> bool:
    return task.finished


ACTIONS = {
    Action.RETRY: BulkRequest(
        Action.RETRY,
        "Retry failed steps",
        "Every failed step of these tasks runs again, its attempts counted from zero.",
        Permission.STEPS_RESOLVE,
        _has_failed,
        retry,
    ),
    Action.RERUN: BulkRequest(
        Action.RERUN,
        "Run again as new tasks",
        "A new task for each of these runs what failed and what is below it; where nothing failed, everything. "
        "These stay as they are.",
        Permission.TASKS_CREATE,
        _has_ended,
        rerun,
    ),
    Action.CANCEL: BulkRequest(
        Action.CANCEL,
        "Cancel",
        "Every step of these tasks that has not ended is cancelled. This cannot be undone.",
        Permission.TASKS_CANCEL,
        lambda task: not _has_ended(task),
        cancel,
        danger=True,
    ),
}


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
    bulk_request = _wanted(request, action)
    tasks = await _matching(request) if all_ else [checked(task_uuid) for task_uuid in task]
    if not tasks:
        raise UsageError("no task is chosen", hint="choose some in the list, or all that match")
    suits = [row for row in await _views(request, tasks) if bulk_request.suits(row)]
    return page(
        request,
        "bulk.html",
        wanted=bulk_request,
        tasks=suits,
        others=len(tasks) - len(suits),
        most=MOST_TASKS if len(tasks) == MOST_TASKS else None,
        progress=None,
        problem=None,
    )


@routes.post("/tasks/bulk", **needs(Permission.TASKS_LIST, confines=True, operates=True, several=True))
async def go_on(request: Request) -> Response:
    """Process the next tasks and show the progress; with scripts the page continues automatically."""
    form = sent(request)
    bulk_request, reason = _wanted(request, form.text("action")), form.required("reason", "a reason")
    left = [checked(task_uuid) for task_uuid in form.text("left").split()]
    if len(left) > MOST_TASKS:
        raise UsageError(f"{len(left)} tasks are more than {MOST_TASKS} at once", hint="choose fewer")
    done = [await _one(request, bulk_request, task_uuid, reason) for task_uuid in left[:PORTION]]
    progress = _progress(form).plus(done, left[PORTION:])
    return page(
        request,
        "bulk.html",
        wanted=bulk_request,
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
    bulk_request = ACTIONS[Action(action)]
    caller_of(request).require(bulk_request.permission)
    return bulk_request


async def _matching(request: Request) -> list[str]:
    search = Search.read(request.query_params)
    which = which_tasks(request, search)
    rows = await program_of(request).views.page(which, limit=MOST_TASKS, oldest_first=search.oldest_first)
    return [row.task_uuid for row in rows]


async def _views(request: Request, tasks: list[str]) -> list[Task]:
    """Return the tasks that exist and that the caller may see."""
    where = namespaces_of(request)
    rows = await program_of(request).views.some(tasks)
    return [row for row in rows if where is None or row.namespace in where]


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
    if not all(text.isdecimal() and len(text) <= 6 for text in numbers):
        raise UsageError("the form is invalid", hint="begin again from the list")
    total, succeeded, refused = map(int, numbers)
    return BulkProgress(total, succeeded, refused, form.text("last_refused"), [], [])
