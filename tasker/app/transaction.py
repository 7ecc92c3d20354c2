"""Submitting from a program that runs no worker: a transaction on Tasker's database is all that is needed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Unpack

from tasker.contracts.messaging import DEFAULT_BACKEND, Backend
from tasker.contracts.plan import Plan
from tasker.db.caller_transaction import CallerTransaction, caller_transaction, in_caller_transaction
from tasker.errors import UsageError
from tasker.messaging.registry import load_backend
from tasker.process.system import new_task_uuid
from tasker.services.authoring.handlers import Workflow
from tasker.services.authoring.targets import choose_workflow, registered_name
from tasker.services.authoring.templates import load_workflows
from tasker.services.caller_submission import LOCK_TIMEOUT_SECONDS, CallerSubmission, registered_plan
from tasker.services.submission import Drafts, Request, RequestOptions, Submitted


def submit_in(
    connection: Any,
    target: str | Path | Plan,
    context: Mapping[str, Any] | None = None,
    *,
    template: str | None = None,
    environment: str | None = None,
    backend: str = DEFAULT_BACKEND,
    lock_timeout: float = LOCK_TIMEOUT_SECONDS,
    **options: Unpack[RequestOptions],
) -> Submitted:
    """Create a task in the caller's own transaction: it exists if, and only if, the caller commits (rule 23).

    `connection` is a SQLAlchemy Connection or Session, or a psycopg Connection; nothing is committed here. `target` is
    a template file or folder, a compiled plan, or `namespace/name[:version]` of a registered template; a template that
    the database lacks is registered in the same transaction. `lock_timeout` is in seconds, `options` are those of
    `Request`. After any error the transaction can go on.

    Raises `TemplateError`, `InputInvalid`, `DuplicateTask`; `UsageError` for what is no transaction, and for a backend
    that sends after the commit (use `App.submit_in`); `DatabaseError` when a lock was not to be had in time.
    """
    request = Request(context or {}, **options)
    return _submit(caller_transaction(connection), target, template, environment, backend, lock_timeout, request)


async def submit_in_async(
    connection: Any,
    target: str | Path | Plan,
    context: Mapping[str, Any] | None = None,
    *,
    template: str | None = None,
    environment: str | None = None,
    backend: str = DEFAULT_BACKEND,
    lock_timeout: float = LOCK_TIMEOUT_SECONDS,
    **options: Unpack[RequestOptions],
) -> Submitted:
    """As `submit_in`, for an AsyncConnection or AsyncSession of SQLAlchemy."""
    request = Request(context or {}, **options)
    return await in_caller_transaction(
        connection,
        lambda transaction: _submit(transaction, target, template, environment, backend, lock_timeout, request),
    )


def _submit(
    transaction: CallerTransaction,
    target: str | Path | Plan,
    template: str | None,
    environment: str | None,
    backend: str,
    lock_timeout: float,
    request: Request,
) -> Submitted:
    plan = target if isinstance(target, Plan) else _find(transaction, str(target), template, environment)
    submission = CallerSubmission(Drafts(new_task_uuid), _sending_backend(backend), register=True)
    return submission.submit(transaction, plan, request, lock_timeout=lock_timeout)


def _find(transaction: CallerTransaction, target: str, template: str | None, environment: str | None) -> Plan:
    if Path(target).exists():
        return choose_workflow(_workflows_of(target, environment), template, target).plan
    return registered_plan(transaction, *registered_name(target))


@cache
def _workflows_of(path: str, environment: str | None) -> tuple[Workflow, ...]:
    return load_workflows(path, environment)


@cache
def _sending_backend(name: str) -> Backend:
    """The backend, unconnected: only its SQL is used."""
    backend = load_backend(name, {})
    if not backend.capabilities.transactional:
        raise UsageError(
            f"the {name} backend cannot send in a transaction, and nobody is here to send after it",
            hint=f'use App.submit_in or SyncApp.submit_in of an app with backend="{name}" (work=False runs no steps)',
        )
    return backend
