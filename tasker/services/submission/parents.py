"""Submissions within a handler: tied to its step, so that a repeated attempt finds the task of the first one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tasker.dataclasses import dataclass
from tasker.engine.identity import handler_identity
from tasker.errors import TaskTooDeep, UsageError
from tasker.json_values import text_problem
from tasker.logging.current_step import running
from tasker.services.submission.check import mistake

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tasker.handlers.claims import Claim
    from tasker.services.submission.submit import Submission

LONGEST_KEY = 1024


@dataclass(frozen=True, slots=True)
class ParentStep:
    """Step whose handler submits a task, with the token of its claim.

    `linked` False: the task gets the identity of the step's submissions, but is not shown as its child.
    """

    step_uuid: str
    token: int | None = None
    linked: bool = True


def within_handler(request: Submission) -> Submission:
    """Return the submission as one of the step whose handler runs here; unchanged outside of a handler."""
    claim = running.get()
    return request if claim is None else of_step(request, claim)


def is_within_handler() -> bool:
    """Return True in the context of a handler: in its thread, its asyncio task or its child process."""
    return running.get() is not None


def of_step(request: Submission, claim: Claim) -> Submission:
    """Return the submission as one of a claimed step: with its parent, in its trace, below its correlation."""
    if request.parent is not None:
        return request
    more: dict[str, Any] = {"parent": ParentStep(claim.step_uuid, claim.token)}
    if request.parent_correlation_id is None:
        more["parent_correlation_id"] = claim.correlation_id or None
    if request.traceparent is None and request.tracestate is None and (trace := claim.propagated_trace) is not None:
        more |= trace.headers()
    return replace(request, **more)


def tied_identity(request: Submission, plan_key: str, context: Mapping[str, Any]) -> str | None:
    """Return the identity of a submission within a handler, or None for one that its step does not determine.

    An idempotency key decides by itself, as it does outside of a handler. Raises `UsageError`.
    """
    key: Any = request.key
    if key is not None and request.idempotency_key is not None:
        raise UsageError(
            "key: expected a key or an idempotency_key, found both",
            hint="key distinguishes the submissions of one step, idempotency_key those of all callers: pass one",
        )
    if request.parent is None:
        if key is not None:
            raise UsageError(
                "key: this is not within a handler",
                hint="pass an idempotency_key; in a thread that a handler started, call context.submit",
            )
        return None
    if key is not None and (not isinstance(key, str) or not key.strip() or len(key) > LONGEST_KEY):
        raise mistake("key", f"a text of at most {LONGEST_KEY} characters", key, "name what the task is for")
    if key is not None and (problem := text_problem(key)):
        raise mistake("key", "a storable text", problem)
    if request.idempotency_key is not None:
        return None
    return handler_identity(request.parent.step_uuid, plan_key, context, key)


def parent_item(parent: ParentStep | None) -> dict[str, Any]:
    """Return the link of a task to its parent as the engine takes it; {} without one."""
    if parent is None or not parent.linked:
        return {}
    return {"parent": {"step": parent.step_uuid, "token": parent.token}}


def too_deep(limit: int) -> TaskTooDeep:
    """Return the error for a task that exceeds the setting `max_task_depth`."""
    return TaskTooDeep(
        f"the task would be more than {limit} tasks below the first one of its line",
        hint="does the template start itself? if so many are meant, raise common.execution.max_task_depth",
    )
