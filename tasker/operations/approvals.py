"""Operations of approvals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from tasker.operations.operation import Body, Endpoint, Param
from tasker.operations.permissions import Permission
from tasker.views.approvals import Approval, ApprovalDetail, ApprovalLink, CountedVote, Decision

APPROVALS = "/v1/approvals"
APPROVAL = APPROVALS + "/{task_uuid}/{step}"
Task = Annotated[str, Param(form="uuid", description="The task's identifier.")]
StepName = Annotated[str, Param(min_length=1, max_length=255, description="The name of the step.")]
Token = Annotated[
    int | None, Param(at_least=0, at_most=2**62, description="The `token` of the request; without it, of the newest.")
]


class ApprovalOperations:
    """Operations of approvals, as clients have them."""

    @Endpoint("GET", APPROVALS, Permission.APPROVALS_DECIDE, "approvals.list", confines=True, tenants=True)
    async def list_approvals(
        self,
        *,
        mine: Annotated[
            bool,
            Param(description="Only what the caller may decide, and has not. `false` needs the permission tasks:list."),
        ] = True,
        namespace: Annotated[str | None, Param(max_length=255)] = None,
        template: Annotated[str | None, Param(max_length=255)] = None,
        after: Annotated[
            str | None, Param(form="uuid", description="`step_uuid` of the last one of the page before.")
        ] = None,
        limit: Annotated[int, Param(at_least=1, at_most=500)] = 50,
    ) -> Sequence[Approval]:
        """Return open approvals, oldest first."""

    @Endpoint("GET", APPROVAL, Permission.APPROVALS_DECIDE, "approvals.get", errors=(404,))
    async def get_approval(self, task_uuid: Task, step: StepName) -> ApprovalDetail:
        """Return the newest approval of a step with its form, what the template shows, and the votes.

        The caller may decide it, or has the permission tasks:read. Raises `ApprovalNotFound`, `NotPermitted`.
        """

    @Endpoint(
        "POST",
        APPROVAL + "/decision",
        Permission.APPROVALS_DECIDE,
        "approvals.decide",
        operates=True,
        body=Body("DecisionRequest", "Decision of the caller about a step that waits for persons."),
        errors=(404, 409),
    )
    async def decide_approval(
        self,
        task_uuid: Task,
        step: StepName,
        decision: Decision,
        *,
        form: Annotated[Mapping[str, Any] | None, Param(description="Values that fit the form.")] = None,
        comment: Annotated[str, Param(max_length=4000)] = "",
        token: Token = None,
        actor: Annotated[
            str | None,
            Param(min_length=1, max_length=200, description="Name of the person, on a server without authentication."),
        ] = None,
    ) -> CountedVote:
        """Approve or reject, as the caller.

        A second decision of a person, and one after the end, are refused with what was decided. Raises
        `ApprovalDecided`, `ApprovalNotFound`, `InputInvalid`, `NotPermitted`, `UsageError`.
        """

    @Endpoint(
        "POST",
        APPROVAL + "/link",
        Permission.APPROVALS_LINK,
        "approvals.link",
        operates=True,
        body=Body("ApprovalLinkRequest", "Person for whom a link is made."),
        errors=(404, 409),
    )
    async def make_approval_link(
        self,
        task_uuid: Task,
        step: StepName,
        subject: Annotated[
            str, Param(min_length=1, max_length=200, description="Person who decides with the link, once.")
        ],
    ) -> ApprovalLink:
        """Return a signed link with which a person decides about the open request without signing in.

        Send it to that person alone. Raises `ApprovalDecided`, `ApprovalNotFound`, `NotPermitted`, `UsageError`.
        """
