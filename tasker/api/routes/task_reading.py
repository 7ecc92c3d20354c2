"""Lists of tasks and details of a task."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Query, Request

from tasker.api.covering import redact_answer, redact_tasks
from tasker.api.cursors import cursor_after, cursor_of
from tasker.api.json_response import Json
from tasker.api.permissions import Permission, namespaces_of, needs
from tasker.api.rendering import task_context, task_details, task_view
from tasker.api.routes.route import program_of, router
from tasker.api.routes.tasks import MOST_STEPS, TaskUuid
from tasker.api.shapes.problems import refusals
from tasker.api.shapes.tasks import TaskContextResponse, TaskDetailsResponse, TaskListResponse
from tasker.api.shapes.texts import Moment
from tasker.services.task_filter import TaskFilter
from tasker.services.tasks import names

routes = router("tasks")
Filter = Annotated[str | None, Query(max_length=255)]
MOST_TRANSITIONS = 10_000
"""Of the details of a task."""
Sort = Annotated[Literal["-created_at", "created_at"], Query(description="The newest first, or the oldest.")]


@routes.get(
    "/v1/tasks", response_model=TaskListResponse, responses=refusals(), **needs(Permission.TASKS_LIST, confines=True)
)
async def list_tasks(
    request: Request,
    namespace: Filter = None,
    status: Annotated[str | None, Query(max_length=255, description="A task's state, such as `complete`.")] = None,
    name: Annotated[str | None, Query(max_length=255, description="The template.")] = None,
    version: Filter = None,
    initiator: Filter = None,
    source_system: Filter = None,
    tag: Annotated[list[str], Query(max_length=20, description="Repeatable: tasks that have all of them.")] = [],  # noqa: B006
    correlation_id: UUID | None = None,
    idempotency_key: Annotated[str | None, Query(max_length=255, description="Of any template that is meant.")] = None,
    created_after: Moment | None = None,
    created_before: Moment | None = None,
    sort: Sort = "-created_at",
    page: Annotated[int, Query(ge=0, le=100_000, description="Counted from 0.")] = 0,
    per_page: Annotated[int, Query(ge=1, le=500)] = 50,
    cursor: Annotated[
        str | None,
        Query(
            max_length=200,
            description="`pagination.next_cursor` of the page before: it costs the same "
            "however far one goes, and nothing is shown twice; `page` and the counts are left out.",
        ),
    ] = None,
) -> Json:
    """Tasks by their time of creation, without their steps; counted to 10,000.

    A page costs no more for many tasks. With a tag, an initiator or a source that many have, beside other filters,
    it may hold fewer tasks than asked for, or none, and say `has_next`: send `next_cursor` to look on.
    """
    which = TaskFilter(
        namespace=namespace,
        status=status,
        template=name,
        version=version,
        initiator=initiator,
        source_system=source_system,
        tags=tag,
        correlation_id=str(correlation_id) if correlation_id else None,
        idempotency_key=idempotency_key,
        created_after=created_after,
        created_before=created_before,
        namespaces=names(namespaces_of(request)),
    )
    views = program_of(request).views
    after = cursor_of(cursor, sort) if cursor else None
    found, read_to = await views.part(
        which, limit=per_page + 1, offset=0 if after else page * per_page, after=after, oldest_first=sort[0] != "-"
    )
    shown = found[:per_page]
    last = shown[-1]["task_uuid"] if len(found) > per_page else read_to
    pagination: dict[str, Any] = {
        "per_page": per_page,
        "has_next": last is not None,
        "next_cursor": cursor_after(last, sort) if last else None,
    }
    if after is None:
        count = await views.count(which)
        pagination |= {
            "page": page,
            "total_count": count.number,
            "total_is_minimum": count.at_least,
            "total_pages": -(-count.number // per_page),
            "has_previous": page > 0,
        }
    tasks = await redact_tasks(request, [task_view(task) for task in shown])
    return Json({"tasks": tasks, "pagination": pagination})


@routes.get(
    "/v1/tasks/{uuid}/context",
    response_model=TaskContextResponse,
    responses=refusals(404),
    **needs(Permission.TASKS_CONTEXT_READ),
)
async def get_task_context(request: Request, uuid: TaskUuid) -> Json:
    """Return the input of a task and the state of its execution."""
    return Json(await redact_answer(request, uuid, task_context(await program_of(request).views.task(uuid, limit=1))))


@routes.get(
    "/v1/tasks/{uuid}/details",
    response_model=TaskDetailsResponse,
    responses=refusals(404),
    **needs(Permission.TASKS_READ),
)
async def get_task_details(request: Request, uuid: TaskUuid) -> Json:
    """A task with the results of its steps and its history: at most 1,000 steps and 10,000 transitions.

    `task.more_steps` says how many steps follow: `/v1/tasks/{uuid}/report` and `/history` have the others.
    """
    program = program_of(request)
    task = await program.views.task(uuid, limit=MOST_STEPS)
    report = await program.tasks.report(uuid, limit=MOST_STEPS)
    found = task_details(task, report, await program.tasks.history(uuid, limit=MOST_TRANSITIONS))
    return Json(await redact_answer(request, uuid, found))
