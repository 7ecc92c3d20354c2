"""Submission from a program without a worker, in a transaction on Tasker's database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Unpack

from tasker.clock import new_task_uuid
from tasker.db.caller_transaction import CallerTransaction, caller_transaction, in_caller_transaction
from tasker.services.submission.in_transaction import LOCK_TIMEOUT_SECONDS, CallerSubmission, sending_backend
from tasker.services.submission.parents import within_handler
from tasker.services.submission.submit import DraftFactory, Submission, SubmissionOptions, SubmissionResult
from tasker.services.workflows.target_plans import plan_in
from tasker.settings.addresses import DEFAULT_BACKEND
from tasker.template.plan import Plan


def submit_in(
    connection: Any,
    target: str | Path | Plan,
    context: Mapping[str, Any] | None = None,
    *,
    template: str | None = None,
    environment: str | None = None,
    backend: str = DEFAULT_BACKEND,
    lock_timeout: float = LOCK_TIMEOUT_SECONDS,
    **options: Unpack[SubmissionOptions],
) -> SubmissionResult:
    """Create a task in the caller's own transaction: it exists if, and only if, the caller commits (rule 23).

    `connection` is a SQLAlchemy Connection or Session, or a psycopg Connection; nothing is committed here. `target` is
    a template file or folder, a compiled plan, or `namespace/name[:version]` of a registered template; an unregistered
    template is registered in the same transaction. `lock_timeout` is in seconds, `options` are those of `Submission`.
    After any error the transaction remains usable.

    Raises `TemplateError`, `InputInvalid`, `DuplicateTask`; `UsageError` if `connection` is not a transaction, and for
    a backend that sends after the commit (use `App.submit_in`); `DatabaseError` if a lock is not available in time.
    """
    request = within_handler(Submission({} if context is None else context, **options))
    submit = _submission(target, request, template, environment, backend, lock_timeout)
    return submit(caller_transaction(connection))


async def submit_in_async(
    connection: Any,
    target: str | Path | Plan,
    context: Mapping[str, Any] | None = None,
    *,
    template: str | None = None,
    environment: str | None = None,
    backend: str = DEFAULT_BACKEND,
    lock_timeout: float = LOCK_TIMEOUT_SECONDS,
    **options: Unpack[SubmissionOptions],
) -> SubmissionResult:
    """Create a task in the transaction of a SQLAlchemy AsyncConnection or AsyncSession; see `submit_in`."""
    request = within_handler(Submission({} if context is None else context, **options))
    submit = _submission(target, request, template, environment, backend, lock_timeout)
    return await in_caller_transaction(connection, submit)


def _submission(
    target: str | Path | Plan,
    request: Submission,
    template: str | None,
    environment: str | None,
    backend: str,
    lock_timeout: float,
) -> Callable[[CallerTransaction], SubmissionResult]:
    def submit(transaction: CallerTransaction) -> SubmissionResult:
        plan = plan_in(transaction, target, template, environment)
        submission = CallerSubmission(DraftFactory(new_task_uuid), sending_backend(backend), register=True)
        return submission.submit(transaction, plan, request, lock_timeout=lock_timeout)

    return submit
