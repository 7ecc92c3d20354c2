"""Routes of approvals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fastapi import Request

from tasker.operations.approvals import ApprovalOperations
from tasker.operations.permissions import Permission
from tasker.server.auth.caller import AuthenticatedCaller
from tasker.server.auth.gate import actor_of, caller_of, namespaces_of, tenants_of
from tasker.server.operation_routes import serves
from tasker.server.program import program_of
from tasker.server.routes import router
from tasker.services.approvals import Approver
from tasker.views.approvals import Approval, ApprovalDetail, ApprovalLink, CountedVote

routes = router("approvals")


def approver_of(request: Request, given: str | None = None) -> Approver:
    """Return the caller as a person who decides; without authentication, the person of the given name."""
    return replace(caller_of(request).approver, name=actor_of(request, given))


def where_permitted(caller: AuthenticatedCaller, permission: Permission, request: Request) -> frozenset[str] | None:
    """Return the caller's namespaces of the route in which they also have this permission; None: all."""
    caller.require(permission)
    where, also = namespaces_of(request), caller.namespaces(permission)
    return where if also is None else also if where is None else where & also


@serves(routes, ApprovalOperations.list_approvals)
async def list_approvals(request: Request, mine: bool, **which: Any) -> Sequence[Approval]:
    caller = caller_of(request)
    where = namespaces_of(request) if mine else where_permitted(caller, Permission.TASKS_LIST, request)
    approver = approver_of(request) if mine and caller.known else None  # an unknown one may be anybody
    tenants = tenants_of(request)
    return await program_of(request).approvals.list(approver=approver, namespaces=where, tenants=tenants, **which)


@serves(routes, ApprovalOperations.get_approval)
async def get_approval(request: Request, task_uuid: str, step: str) -> ApprovalDetail:
    return await shown_approval(request, task_uuid, step)


async def shown_approval(request: Request, task_uuid: str, step: str) -> ApprovalDetail:
    """Return an approval that the caller may decide, or whose task they may read. Raises `NotPermitted`."""
    caller, approvals = caller_of(request), program_of(request).approvals
    reads = caller.namespaces(Permission.TASKS_READ) if caller.may(Permission.TASKS_READ) else frozenset()
    if reads is None or reads:
        approval = await approvals.get(task_uuid, step)
        if reads is None or approval.namespace in reads:
            return approval
    return await approvals.get(task_uuid, step, approver=approver_of(request))


@serves(routes, ApprovalOperations.decide_approval)
async def decide_approval(
    request: Request, task_uuid: str, step: str, decision: str, actor: str | None, **vote: Any
) -> CountedVote:
    caller, person = caller_of(request), approver_of(request, actor)
    proof = caller.method if caller.known else None
    return await program_of(request).approvals.decide(
        task_uuid, step, decision, actor=person.name, approver=person, via="api", proof=proof, **vote
    )


@serves(routes, ApprovalOperations.make_approval_link)
async def make_approval_link(request: Request, task_uuid: str, step: str, subject: str) -> ApprovalLink:
    return await program_of(request).approvals.link(task_uuid, step, subject)
