"""Form that submits a task, generated from the input schema of its template."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from fastapi import Request
from starlette.responses import Response

from tasker.dataclasses import dataclass
from tasker.errors import DuplicateTask, InputInvalid, NotStorable, TaskerError, UsageError
from tasker.operations.permissions import Permission
from tasker.server.auth.gate import known_caller, needs
from tasker.server.errors import pointer, problem_of
from tasker.server.program import program_of
from tasker.server.web.forms import Form
from tasker.server.web.presenters.fleet import request_body, submit_command
from tasker.server.web.presenters.input_form import fields_of, typed_in
from tasker.server.web.rendering import page, redirect, url
from tasker.server.web.route import page_router, sent
from tasker.services.submission.check import check_priority
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission as TaskRequest
from tasker.template.plan import Plan

routes = page_router()
SUBMIT = "/templates/{namespace}/{name}/{version}/submit"
CREATES = needs(Permission.TASKS_CREATE)
PREFIX = "input:"
_WHOLE_NUMBER = re.compile(r"[+-]?\d{1,10}")
OTHERS = (
    "priority",
    "tags",
    "run_at",
    "delay",
    "expires_in",
    "deadline",
    "tenant",
    "reason",
    "idempotency_key",
    "correlation_id",
)


@dataclass(frozen=True, slots=True)
class Filled:
    """Submitted form: the input by JSON pointer and as a value, the other fields, and the problems by JSON pointer."""

    typed: dict[str, str]
    context: dict[str, Any]
    others: dict[str, str]
    problems: dict[str, str]


@routes.get(SUBMIT, **CREATES)
async def show_form(request: Request, namespace: str, name: str, version: str) -> Response:
    """Show the form with the defaults of the schema."""
    plan = (await program_of(request).plans.find(namespace, name, version)).plan
    return _page(request, plan, Filled({}, {}, {}, {}))


@routes.post(SUBMIT + "/check", **CREATES)
async def check(request: Request, namespace: str, name: str, version: str) -> Response:
    """Show the validator's problems with the values typed so far; submit nothing."""
    plan = (await program_of(request).plans.find(namespace, name, version)).plan
    return _page(request, plan, _with_problems(plan, _filled(plan, sent(request))))


@routes.post(SUBMIT, **CREATES)
async def submit(request: Request, namespace: str, name: str, version: str) -> Response:
    """Create the task; if that fails, show the form again with the problems and the typed values."""
    program = program_of(request)
    plan = (await program.plans.find(namespace, name, version)).plan
    filled = _filled(plan, sent(request))
    if filled.problems:
        return _page(request, plan, _with_problems(plan, filled), 422)
    try:
        order = TemplateSubmission(namespace, name, version, _request(filled, known_caller(request)))
        submitted = await program.submissions.submit(order)
    except DuplicateTask as error:
        existing = url(request, f"tasks/{error.task_uuid}") if error.task_uuid else None
        return _page(request, plan, filled, 409, problem_of(error), existing)
    except (InputInvalid, NotStorable) as error:
        return _page(request, plan, _with_problems(plan, filled), 422, problem_of(error))
    except TaskerError as error:
        problem = problem_of(error)
        return _page(request, plan, filled, problem["status"], problem)
    message = "A task with this unique key runs: this one." if submitted.unique else "The task is submitted."
    message = "Merged into the task of this debounce key: this one." if submitted.debounced else message
    return redirect(request, f"tasks/{submitted.task_uuid}", message)


def _filled(plan: Plan, form: Form) -> Filled:
    typed = {name[len(PREFIX) :]: form.raw(name) for name in form.fields if name.startswith(PREFIX)}
    parsed = typed_in(plan.input_schema, typed)
    return Filled(typed, parsed.context, {name: form.text(name) for name in OTHERS}, parsed.problems)


def _with_problems(plan: Plan, filled: Filled) -> Filled:
    """Return the form with the validator's problems, worded as by the API and the command line."""
    from tasker.template.schema_check import check_input

    messages = {pointer(problem.path): problem.message for problem in reversed(check_input(plan, filled.context))}
    return Filled(filled.typed, filled.context, filled.others, {**messages, **filled.problems})


def _request(filled: Filled, caller: str | None) -> TaskRequest:
    others = filled.others
    priority = others["priority"] or None
    return TaskRequest(
        filled.context,
        priority=check_priority(int(priority) if priority and _WHOLE_NUMBER.fullmatch(priority) else priority),
        idempotency_key=others["idempotency_key"] or None,
        correlation_id=_correlation(others["correlation_id"]),
        initiator=caller or "unknown",
        source_system="web page",
        reason=others["reason"],
        tags=others["tags"].split(),
        run_at=others["run_at"] or None,
        delay=others["delay"] or None,
        expires_in=others["expires_in"] or None,
        deadline=others["deadline"] or None,
        tenant=others["tenant"] or None,
    )


def _correlation(text: str) -> str | None:
    try:
        return str(UUID(text)) if text else None
    except ValueError:
        message = f"correlation identifier: expected a UUID, found {text!r:.80}"
        raise UsageError(message, hint="leave it empty: the task's own identifier is used then") from None


def _page(
    request: Request, plan: Plan, filled: Filled, status: int = 200, problem: Any = None, existing: str | None = None
) -> Response:
    return page(
        request,
        "template/submit.html",
        status,
        plan=plan,
        fields=fields_of(plan.input_schema, filled.typed),
        problems=filled.problems,
        others={name: filled.others.get(name, "") for name in OTHERS},
        problem=problem if not filled.problems else None,
        existing=existing,
        command=submit_command(plan, filled.context),
        body=request_body(plan, filled.context),
    )
