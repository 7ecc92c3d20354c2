"""Page of one task: its state, why it does not proceed, and the available actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Query, Request
from starlette.responses import Response

from tasker.operations.permissions import Permission
from tasker.server.api.task_events import get_events
from tasker.server.auth.gate import caller_of, namespaces_of, needs, tenants_of
from tasker.server.program import program_of
from tasker.server.rendering import Json
from tasker.server.web.presenters import graph
from tasker.server.web.presenters.task import (
    ShownTask,
    commands_of,
    expressions_of,
    rows_of,
    step_commands,
    step_plan_of,
)
from tasker.server.web.presenters.timeline import timeline
from tasker.server.web.rendering import page
from tasker.server.web.route import page_router
from tasker.template.plan import Plan
from tasker.views.model import encode
from tasker.views.task_lists import TransitionDetail
from tasker.views.tasks import TaskReport

routes = page_router()
View = Literal["graph", "timeline", "history", "logs", "data", "children"]
Level = Literal["debug", "info", "warning", "error"]
StepName = Annotated[str, Query(max_length=255)]
LINES_SHOWN = 500
"""As many as a person reads; `tasker task logs` has the rest."""
TRANSITIONS_SHOWN = 2000
"""The newest of a task: a browser takes seconds for a longer table."""
STEPS_PER_PAGE = 500
"""The page of a task comes again whenever something happens to it, so it must stay small."""
LARGEST_DRAWN_GRAPH = 1000
"""Steps; laying out more would occupy the server for longer than other requests should wait."""
INPUTS_SHOWN = 20
"""Results of what a step depends on, beside its own."""
UNDOABLE = ("error", "blocked_by_failures")
"""States of a task that an operator may compensate."""
UNDONE = ("compensating", "compensated", "compensation_failed")
"""Outcomes of a task of which only compensations and steps of `finally` can be repaired."""
BESIDE = "beside"  # where a step is shown; a page asks for it alone


@routes.get("/tasks/{uuid}", **needs(Permission.TASKS_READ))
async def show_task(
    request: Request,
    uuid: str,
    view: View = "graph",
    step: StepName = "",
    level: Level = "debug",
    first: Annotated[int, Query(ge=0, le=16_777_215)] = 0,
    after: Annotated[UUID | None, Query()] = None,
    why: bool = False,
) -> Response:
    """Show a task, with one of its steps in a side panel if `step` is given. The table of steps begins at row
    `first`, that of the tasks that they started behind `after`. Of a wide task the reasons why it waits are shown if
    `why` is given."""
    last = None if after is None else str(after)
    return await task_page(request, uuid, view=view, step=step, level=level, first=first, after=last, why=why)


@routes.get("/tasks/{uuid}/events", **needs(Permission.TASKS_READ))
async def follow_task(request: Request, uuid: str) -> Response:
    """Stream the task's events like the API; the page refreshes after each."""
    return await get_events(request, uuid, request.headers.get("last-event-id"), request.query_params.get("after"))


@routes.get("/tasks/{uuid}/report", **needs(Permission.TASKS_READ))
async def show_report(request: Request, uuid: str) -> Response:
    """The task as JSON, as the API answers it: browsers have no credential for the API."""
    return Json(encode(TaskReport, await program_of(request).tasks.report(uuid)))


async def task_page(
    request: Request,
    uuid: str,
    *,
    view: str = "graph",
    step: str = "",
    level: str = "debug",
    first: int = 0,
    after: str | None = None,
    why: bool = False,
    **values: Any,
) -> Response:
    """Return the page of a task; `values` are the results of an action (`status`, `problem`, `typed`)."""
    program = program_of(request)
    typed = values.get("typed", {})
    if request.headers.get("hx-target") == BESIDE:
        report = await program.task_pages.step(uuid, step, inputs=INPUTS_SHOWN)
        drawer = await _drawer(request, report, step) if step else None
        return page(request, "task/beside.html", report=report, view=view, drawer=drawer, typed=typed)
    counts = await program.task_pages.counts(uuid)
    is_wide = counts.total > LARGEST_DRAWN_GRAPH
    report = await (_part(request, uuid, first) if is_wide else program.tasks.report(uuid))
    error = report.error
    if is_wide and counts.error:
        error = (await program.task_pages.first_failure(uuid)).error
    drawer = await _opened(request, uuid, step, None if is_wide else report) if step else None
    is_shown = not report.finished and caller_of(request).may(Permission.SYSTEM_PAUSES_READ)
    pause = await program.pauses.of_task(uuid) if is_shown else None
    is_explained = not report.finished and (why or not is_wide)
    task = ShownTask(report, datetime.now(UTC), counts, error, pause)
    parts: dict[str, Any] = {"drawing": None, "timeline": None, "history": (), "lines": ()}
    rows = rows_of(report)
    where, tenants = namespaces_of(request), tenants_of(request)
    family = await program.tasks.children(uuid, after=after, namespaces=where, tenants=tenants)
    if view == "graph":
        parts["drawing"] = _drawing(report, await program.pinned_plan(uuid), family.steps, is_wide)
    elif view == "timeline":
        moves = await program.tasks.history_of_steps(uuid, limit=STEPS_PER_PAGE, offset=first)
        parts["timeline"] = timeline(moves, task.now)
    elif view == "history":
        parts["history"] = (await _history(request, uuid, first if is_wide else None))[-TRANSITIONS_SHOWN:]
    elif view == "logs":
        parts["lines"] = await _lines(request, uuid, step, level)
    return page(
        request,
        "task/page.html",
        values.get("status", 200),
        view=view,
        level=level,
        shown=task,
        report=report,
        family=family,
        rows=rows if is_wide else rows[first : first + STEPS_PER_PAGE],
        first=first,
        all_rows=counts.total if is_wide else len(rows),
        rows_shown=len(report.steps) if is_wide else len(rows[first : first + STEPS_PER_PAGE]),
        is_wide=is_wide,
        steps_per_page=STEPS_PER_PAGE,
        explained=await program.tasks.explain(uuid) if is_explained else None,
        is_explained=is_explained,
        may_undo=report.status in UNDOABLE
        and report.outcome is None
        and any(step.undoes is not None for step in (await program.pinned_plan(uuid)).steps),
        commands=commands_of(report),
        drawer=drawer,
        problem=values.get("problem"),
        typed=typed,
        **parts,
    )


def _drawing(report: TaskReport, plan: Plan, started: Mapping[str, int], is_wide: bool) -> graph.Drawing | None:
    """Return the graph of the task, or that of its template for a wide task; None if that is too large, too."""
    if not is_wide:
        return graph.of_task(report, plan, started)
    return graph.of_template(plan) if len(plan.steps) <= LARGEST_DRAWN_GRAPH else None


async def _part(request: Request, uuid: str, first: int) -> TaskReport:
    return await program_of(request).task_pages.page(uuid, limit=STEPS_PER_PAGE, offset=first)


async def _opened(request: Request, uuid: str, step: str, report: TaskReport | None) -> dict[str, Any] | None:
    """Return the details of a step from the report of its whole task, or from what is read for it."""
    if report is None:
        report = await program_of(request).task_pages.step(uuid, step, inputs=INPUTS_SHOWN)
    return await _drawer(request, report, step)


async def _history(request: Request, uuid: str, first: int | None) -> Sequence[TransitionDetail]:
    """Return the transitions of a task, or its own and those of the page of its steps that begins at `first`."""
    tasks = program_of(request).tasks
    return await (
        tasks.history(uuid) if first is None else tasks.history_of_steps(uuid, limit=STEPS_PER_PAGE, offset=first)
    )


async def _lines(request: Request, uuid: str, step: str, level: str) -> Any:
    return await program_of(request).tasks.logs(uuid, step=step or None, level=level, limit=LINES_SHOWN)


async def _drawer(request: Request, report: TaskReport, name: str) -> dict[str, Any] | None:
    """Return the details of a step: inputs, attempts, log lines; None if the task has no such step or access is not
    permitted."""
    step = report.steps.get(name)
    if step is None or not caller_of(request).may(Permission.STEPS_READ):
        return None
    program, uuid = program_of(request), report.task_uuid
    reasons = [] if report.finished else (await program.tasks.explain(uuid, name)).reasons
    plan = await program.pinned_plan(uuid)
    planned = step_plan_of(plan, step)
    handler_inputs = None
    if planned.inputs is not None:
        handler_inputs = await program.views.inputs(uuid, step.step_uuid)
    return {
        "step": step,
        "expressions": expressions_of(plan, planned),
        "handler_inputs": handler_inputs,
        "explained": reasons,
        "inputs": {above: report.steps[above].result for above in step.depends_on if above in report.steps},
        "lines": await _lines(request, uuid, name, "debug"),
        "kept": asdict(await program.tasks.step_extras(uuid, name)),
        "commands": step_commands(uuid, step),
        "may_repair": report.outcome not in UNDONE or planned.is_late,
        "plain": asdict(step),
    }
