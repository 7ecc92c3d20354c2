"""Approval service through a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tasker.operations.approvals import ApprovalOperations
from tasker.operations.operation import RemoteService
from tasker.views.approvals import Approval, ApprovalDetail, CountedVote, Decision

if TYPE_CHECKING:
    from tasker.services.approvals import Approver


class HttpApprovals(RemoteService):
    """`tasker.services.approvals.Approvals` through a server."""

    _list = ApprovalOperations.list_approvals
    _get = ApprovalOperations.get_approval
    _decide = ApprovalOperations.decide_approval
    link = ApprovalOperations.make_approval_link

    async def list(self, *, approver: Approver | None = None, **which: Any) -> Sequence[Approval]:
        """Return open approvals; with any `approver` those of the caller whom the server knows."""
        return await self._list(mine=approver is not None, **which)

    async def get(self, task_uuid: str, step: str) -> ApprovalDetail:
        """Return the newest approval of a step."""
        return await self._get(task_uuid, step)

    async def decide(
        self,
        task_uuid: str,
        step: str,
        decision: Decision,
        *,
        actor: str,
        form: Mapping[str, Any] | None = None,
        comment: str = "",
    ) -> CountedVote:
        """Decide as the caller whom the server knows; without authentication as `actor`."""
        return await self._decide(task_uuid, step, decision, form=form, comment=comment, actor=actor)
