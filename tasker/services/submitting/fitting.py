"""Whether what a task is created with fits: its context the template's `input_schema`, its priority, its trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tasker.contracts.plan import Plan
from tasker.contracts.rules.limits import MAX_PRIORITY, MIN_PRIORITY
from tasker.contracts.tracing import checked
from tasker.errors import InputInvalid, UsageError
from tasker.lifecycle.sensitive import without_secrets
from tasker.template.schema.check import Problem, check_input
from tasker.template.schema.messages import found

if TYPE_CHECKING:
    from tasker.services.submitting.submission import Request


def input_problems(plan: Plan, context: Any) -> list[Problem]:
    """As `check_input`, in words that hold nothing sensitive; an input is an object, with or without a schema."""
    if not isinstance(context, Mapping):
        return [Problem("$", f"expected an object, found {'a text' if isinstance(context, str) else found(context)}")]
    schema = plan.input_schema or {}
    return [Problem(each.path, without_secrets(each.message, schema, context)) for each in check_input(plan, context)]


def require_fit(plan: Plan, context: Mapping[str, Any]) -> None:
    """Raises `InputInvalid` with every problem."""
    if problems := input_problems(plan, context):
        lines = "\n".join(f"  {problem.path}: {problem.message}" for problem in problems)
        raise InputInvalid(
            f"the input does not fit the template {plan.namespace}/{plan.name}:\n{lines}", problems=problems
        )


def check_priority(value: Any) -> int:
    """The priority of a task. Raises `UsageError` for what its column cannot hold."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and MIN_PRIORITY <= value <= MAX_PRIORITY:
        return int(value)
    raise UsageError(
        f"priority: expected a whole number from {MIN_PRIORITY} to {MAX_PRIORITY}, found {value!r:.80}",
        hint="0 is the usual priority, a higher one runs sooner",
    )


def trace_item(request: Request) -> dict[str, Any]:
    """The trace of a task as the engine takes it. Raises `UsageError` for what is none."""
    try:
        trace = checked(request.traceparent, request.tracestate)
    except ValueError as error:
        raise UsageError(str(error), hint="leave it out where the task belongs to no trace") from None
    return {"trace": trace.headers()} if trace else {}
