"""Operator actions on a task and its steps, with the same services, permissions and audit log as the API."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request
from starlette.responses import Response

from tasker.errors import TaskerError, UsageError
from tasker.operations.permissions import Permission
from tasker.server.auth.gate import actor_of, needs
from tasker.server.errors import problem_of, status_of
from tasker.server.json_request import RepeatedKey, parse_json
from tasker.server.program import program_of
from tasker.server.web.forms import Form
from tasker.server.web.pages.task import task_page
from tasker.server.web.rendering import redirect
from tasker.server.web.route import page_router, sent, typed
from tasker.services.operators.pauses import PauseTarget
from tasker.services.wording import counted

routes = page_router()
OPERATES = needs(Permission.STEPS_RESOLVE, operates=True)
PAUSE = needs(Permission.SYSTEM_PAUSES_CHANGE, operates=True)


@routes.post("/tasks/{uuid}/cancel", **needs(Permission.TASKS_CANCEL, operates=True))
async def cancel(request: Request, uuid: str) -> Response:
    """Cancel a task and all its steps that have not ended."""

    async def act(form: Form) -> Response:
        program = program_of(request)
        await program.tasks.cancel(uuid, reason=form.required("reason", "a reason"), actor=actor_of(request))
        if (await program.task_pages.page(uuid, limit=1, offset=0)).finished:
            return redirect(request, f"tasks/{uuid}", "The task is cancelled.")
        return redirect(
            request, f"tasks/{uuid}", "The task is being cancelled. Its steps of finally run before it ends."
        )

    return await redirect_or_error(request, uuid, act)


@routes.post("/tasks/{uuid}/compensate", **needs(Permission.TASKS_CANCEL, operates=True))
async def compensate(request: Request, uuid: str) -> Response:
    """Undo the effects of the complete steps of a task that failed."""

    async def act(form: Form) -> Response:
        await program_of(request).tasks.compensate(
            uuid, reason=form.required("reason", "a reason"), actor=actor_of(request)
        )
        return redirect(request, f"tasks/{uuid}", "The effects of the complete steps are being undone.")

    return await redirect_or_error(request, uuid, act)


@routes.post("/tasks/{uuid}/retry", **OPERATES)
async def retry(request: Request, uuid: str) -> Response:
    """Run every failed step again."""

    async def act(form: Form) -> Response:
        reason = form.required("reason", "a reason")
        result = await program_of(request).steps.retry(uuid, actor=actor_of(request), reason=reason)
        left = f" Left, to be run only once: {', '.join(result.left)}." if result.left else ""
        return redirect(request, f"tasks/{uuid}", f"{counted(len(result.reset), 'step')} will run again.{left}")

    return await redirect_or_error(request, uuid, act)


@routes.post("/tasks/{uuid}/rerun", **needs(Permission.TASKS_CREATE, operates=True))
async def rerun(request: Request, uuid: str) -> Response:
    """Run a task again from a step, as a new task."""

    async def act(form: Form) -> Response:
        step, reason = form.required("step", "a step"), form.required("reason", "a reason")
        context = json_object(form.text("context"), "the input") if form.text("context") else None
        result = await program_of(request).reruns.start(
            uuid, step, actor=actor_of(request), reason=reason, context=context
        )
        message = f"A new task of {counted(result.steps, 'step')}, of which {result.reused} are taken over."
        return redirect(request, f"tasks/{result.task_uuid}", message)

    return await redirect_or_error(request, uuid, act)


@routes.post("/tasks/{uuid}/pause", **PAUSE)
async def pause(request: Request, uuid: str) -> Response:
    """Pause a task: nothing more of it starts."""

    async def act(form: Form) -> Response:
        target, reason = PauseTarget.of(task=uuid), form.required("reason", "a reason")
        paused = await program_of(request).pauses.pause(target, actor=actor_of(request), reason=reason)
        message = "Paused: running steps continue, no new ones start." if paused else "It was paused already."
        return redirect(request, f"tasks/{uuid}", message)

    return await redirect_or_error(request, uuid, act)


@routes.post("/tasks/{uuid}/resume", **PAUSE)
async def resume(request: Request, uuid: str) -> Response:
    async def act(form: Form) -> Response:
        target = PauseTarget.of(task=uuid)
        held = await program_of(request).pauses.resume(target, actor=actor_of(request), reason=form.text("reason"))
        message = "It was not paused." if held is None else f"Resumed: {counted(held, 'step')} can start now."
        return redirect(request, f"tasks/{uuid}", message)

    return await redirect_or_error(request, uuid, act)


@routes.post("/tasks/{uuid}/reset-step", **OPERATES)
async def reset_step(request: Request, uuid: str) -> Response:
    """Run one failed step again."""

    async def act(form: Form) -> Response:
        step, reason = form.required("step", "a step"), form.required("reason", "a reason")
        await program_of(request).steps.reset(uuid, step, actor=actor_of(request), reason=reason)
        return redirect(request, f"tasks/{uuid}", f"{step} will run again.", step=step)

    return await redirect_or_error(request, uuid, act)


@routes.post("/tasks/{uuid}/resolve-step", **OPERATES)
async def resolve_step(request: Request, uuid: str) -> Response:
    """Mark a step as done without a result."""

    async def act(form: Form) -> Response:
        step, reason = form.required("step", "a step"), form.required("reason", "a reason")
        await program_of(request).steps.resolve(uuid, step, actor=actor_of(request), reason=reason)
        return redirect(request, f"tasks/{uuid}", f"{step} is taken as done.", step=step)

    return await redirect_or_error(request, uuid, act)


@routes.post("/tasks/{uuid}/complete-step", **OPERATES)
async def complete_step(request: Request, uuid: str) -> Response:
    """Mark a step as done with a result."""

    async def act(form: Form) -> Response:
        step, reason = form.required("step", "a step"), form.required("reason", "a reason")
        result = json_object(form.text("result"), "the result")
        await program_of(request).steps.complete(uuid, step, result, actor=actor_of(request), reason=reason)
        return redirect(request, f"tasks/{uuid}", f"{step} is done, with the result that you gave.", step=step)

    return await redirect_or_error(request, uuid, act)


async def redirect_or_error(request: Request, uuid: str, act: Callable[[Form], Awaitable[Response]]) -> Response:
    """Perform the action; if it fails, show the task again with the error and the typed values."""
    form = sent(request)
    try:
        return await act(form)
    except TaskerError as error:
        status = status_of(request, error)
        if status in (403, 404) or status >= 500:
            raise
        typed_values = typed(request, "step", "reason", "result", "context")
        values: dict[str, Any] = {"status": status, "problem": problem_of(error), "typed": typed_values}
        return await task_page(request, uuid, step=form.text("step"), **values)


def json_object(text: str, what: str) -> dict[str, Any]:
    """Return the object of a JSON text. Raises `UsageError` with the location of the error."""
    try:
        value = parse_json(text)
    except RepeatedKey as error:
        raise UsageError(f"{what}: {error}", hint="remove one of the two") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise UsageError(f"{what} is not JSON: {error.msg} at {place}", hint="correct it and send it again") from None
    except RecursionError:
        raise UsageError(f"{what} is nested too deeply", hint="give fewer levels") from None
    if not isinstance(value, dict):
        kind = {list: "a list", str: "a text", bool: "true or false"}.get(type(value), "a single value")
        raise UsageError(f"{what} is {kind}", hint='expected an object, such as {"amount": 3}')
    return value
