"""Redaction of values that the caller may not read from answers about tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from fastapi import Request

from tasker.errors import UsageError
from tasker.operations.permissions import Permission
from tasker.redaction import without_messages
from tasker.server.auth.gate import caller_of
from tasker.server.program import program_of
from tasker.views.tasks import Task

T = TypeVar("T")


async def redact_answer(request: Request, task_uuid: str, answer: T) -> T:
    """Return an answer about one task with sensitive values redacted."""
    permitted = _permitted(request)
    if permitted is None:
        return answer
    veil = await program_of(request).sensitive_values.veil(task_uuid, permitted)
    redacted: T = answer if veil is None else veil.redact(answer)
    return redacted


async def redact_tasks(request: Request, tasks: Sequence[Task]) -> Sequence[Task]:
    """Return a list of tasks with sensitive values redacted."""
    permitted = _permitted(request)
    if permitted is None or not tasks:
        return tasks
    veils = await program_of(request).sensitive_values.veils([task.task_uuid for task in tasks], permitted)
    return [veils[task.task_uuid].redact(task) if task.task_uuid in veils else task for task in tasks]


async def redact_failures(
    request: Request, failures: Sequence[T], namespaces: Callable[[T], Iterable[str]]
) -> Sequence[T]:
    """Return dead letters without failure messages in namespaces with sensitive values.

    Messages are removed whole because the sensitive part of a message is unknown.
    """
    permitted = _permitted(request)
    if permitted is None or not failures:
        return failures
    hidden = await program_of(request).sensitive_values.namespaces(permitted)
    return [without_messages(failure) if hidden.intersection(namespaces(failure)) else failure for failure in failures]


async def may_search_inputs(request: Request, namespace: str | None) -> None:
    """Check that the caller may search tasks by their inputs.

    Raises `UsageError` if the inputs may have sensitive values that the caller may not read: a search result would
    reveal them.
    """
    permitted = _permitted(request)
    hidden = await program_of(request).sensitive_values.namespaces(permitted) if permitted is not None else ()
    if hidden and (not namespace or namespace in hidden):
        hint = f"choose a namespace other than {', '.join(sorted(hidden))}"
        raise UsageError("inputs are not searched: they may contain values that you may not read", hint=hint)


def _permitted(request: Request) -> frozenset[str] | None:
    """Return the namespaces whose sensitive values the caller may read, or None for all of them."""
    caller = caller_of(request)
    return caller.namespaces(Permission.DATA_READ_SENSITIVE)
