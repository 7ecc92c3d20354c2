"""Pages of approvals: what waits for the caller, one with its form, and the page of a signed link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from fastapi import Request
from starlette.responses import Response

from tasker.errors import ApprovalDecided, InputInvalid, NotPermitted, TaskerError, UsageError
from tasker.operations.permissions import Permission
from tasker.server.api.approvals import approver_of, shown_approval, where_permitted
from tasker.server.auth.gate import caller_of, namespaces_of, needs, tenants_of
from tasker.server.errors import pointer, problem_of, status_of
from tasker.server.program import program_of
from tasker.server.web.forms import Form
from tasker.server.web.presenters.input_form import Typed, beside, fields_of, typed_in
from tasker.server.web.presenters.paging import PER_PAGE
from tasker.server.web.rendering import page, redirect, url
from tasker.server.web.route import PageRoute, page_router, sent
from tasker.services.approval_links import LinkClaims
from tasker.services.approvals import Approver
from tasker.services.audit import OperatorAction, OperatorAudit
from tasker.views.approvals import ApprovalDetail, CountedVote


class LinkRoute(PageRoute):
    """Route of a signed link, which names its person: nobody signs in."""

    has_viewer = False


routes, links = page_router(), page_router(LinkRoute)
DECIDES = needs(Permission.APPROVALS_DECIDE, confines=True, tenants=True)
DECIDES_ONE = needs(Permission.APPROVALS_DECIDE)
OPERATES = needs(Permission.APPROVALS_DECIDE, operates=True)
PREFIX = "input:"
PRIVATE = {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Robots-Tag": "noindex"}
NOTHING: Mapping[str, str] = {}


@routes.get("/approvals", **DECIDES)
async def list_approvals(request: Request, everyone: str = "", after: UUID | None = None) -> Response:
    """Show what waits for the caller, or all open approvals."""
    where = namespaces_of(request)
    if everyone:
        where = where_permitted(caller_of(request), Permission.TASKS_LIST, request)
    mine = None if everyone or not caller_of(request).known else approver_of(request)
    behind = None if after is None else str(after)
    found = await program_of(request).approvals.list(
        approver=mine, after=behind, limit=PER_PAGE + 1, namespaces=where, tenants=tenants_of(request)
    )
    rows = found[:PER_PAGE]
    further = None
    if len(found) > PER_PAGE:
        further = url(request, "approvals", everyone=everyone, after=rows[-1].step_uuid)
    return page(request, "approvals/list.html", rows=rows, everyone=bool(everyone), further=further)


@routes.get("/approvals/{task_uuid}/{step}", **DECIDES_ONE)
async def show_approval(request: Request, task_uuid: str, step: str) -> Response:
    """Show an approval with its form."""
    return await _approval(request, task_uuid, step)


@routes.post("/approvals/{task_uuid}/{step}", **OPERATES)
async def decide(request: Request, task_uuid: str, step: str) -> Response:
    """Approve or reject; if that fails, show the form again with the problems and the typed values."""
    form, caller = sent(request), caller_of(request)
    approval = await shown_approval(request, task_uuid, step)
    parsed = typed_in(approval.form, _typed(form)) if approval.form else Typed()
    if parsed.problems:
        return await _approval(request, task_uuid, step, 422, problems=parsed.problems)
    person = approver_of(request, form.text("actor") or None)
    try:
        if not caller.known and not form.text("actor"):
            raise UsageError("your name is missing", hint="say who decides")
        vote = await program_of(request).approvals.decide(
            task_uuid,
            step,
            form.text("decision"),
            actor=person.name,
            approver=person,
            via="page",
            proof=caller.method if caller.known else None,
            **_vote(form, parsed),
        )
    except (ApprovalDecided, InputInvalid, NotPermitted, UsageError) as error:
        problems = _problems(error)
        shown = None if problems else problem_of(error)
        return await _approval(request, task_uuid, step, status_of(request, error), problem=shown, problems=problems)
    return redirect(request, "approvals", _said(vote))


@links.get("/decide/{link}")
async def show_link(request: Request, link: str) -> Response:
    """Show what a signed link is about. Only a POST decides: programs that look into links change nothing."""
    return await _linked(request, link)


@links.post("/decide/{link}")
async def decide_by_link(request: Request, link: str) -> Response:
    """Decide as the person of a signed link, once."""
    form = sent(request)
    approvals = program_of(request).approvals
    try:
        claims = approvals.claims_of(link)
        approval = await _approval_of(request, claims)
        parsed = typed_in(approval.form, _typed(form)) if approval.form else Typed()
        if parsed.problems:
            return await _linked(request, link, 422, problems=parsed.problems)

        async def use() -> CountedVote:
            return await approvals.decide(
                claims.task_uuid,
                claims.step,
                form.text("decision"),
                actor=claims.subject,
                approver=Approver(claims.subject),
                via="link",
                proof="link",
                **(_vote(form, parsed) | {"token": claims.token}),
            )

        audit = OperatorAudit(program_of(request).operator_log, _action(request, claims), 303)
        await audit.record(use, lambda done: 303, lambda error: _status(request, error))
    except TaskerError as error:
        problems, status = _problems(error), status_of(request, error)
        if status >= 500:  # the page that keeps what was typed needs no database
            raise
        shown = None if problems else problem_of(error)
        return await _linked(request, link, status, problem=shown, problems=problems)
    return _private(redirect(request, f"decide/{link}"))


async def _approval(
    request: Request,
    task_uuid: str,
    step: str,
    status: int = 200,
    *,
    problem: Any = None,
    problems: Mapping[str, str] = NOTHING,
) -> Response:
    caller = caller_of(request)
    approval = await shown_approval(request, task_uuid, step)
    voted = any(vote.by == caller.name for vote in approval.votes) and caller.known
    return page(
        request,
        "approvals/page.html",
        status,
        approval=approval,
        decides=not voted and (not caller.known or await _may_decide(request, task_uuid, step)),
        voted=voted,
        asks_name=not caller.known,
        problem=problem,
        **_form(request, approval, problems),
    )


async def _may_decide(request: Request, task_uuid: str, step: str) -> bool:
    try:
        await program_of(request).approvals.get(task_uuid, step, approver=approver_of(request))
    except NotPermitted:
        return False
    return True


async def _linked(
    request: Request, link: str, status: int = 200, *, problem: Any = None, problems: Mapping[str, str] = NOTHING
) -> Response:
    shown: dict[str, Any] = {"approval": None, "subject": "", "own": None, "problem": problem}
    try:
        claims = program_of(request).approvals.claims_of(link)
        approval = await _approval_of(request, claims)
        own = next((vote for vote in approval.votes if vote.by == claims.subject), None)
        shown |= {"approval": approval, "subject": claims.subject, "own": own}
        shown |= _form(request, approval, problems)
        if own is not None:
            shown["problem"] = None
    except TaskerError as error:
        status = status_of(request, error)
        shown["problem"] = problem_of(error)
    return _private(page(request, "approvals/link.html", status, **shown))


async def _approval_of(request: Request, claims: LinkClaims) -> ApprovalDetail:
    person = Approver(claims.subject)
    approval = await program_of(request).approvals.get(
        claims.task_uuid, claims.step, approver=person, token=claims.token
    )
    return replace(approval, votes=[vote for vote in approval.votes if vote.by == claims.subject])


def _form(request: Request, approval: ApprovalDetail, problems: Mapping[str, str]) -> dict[str, Any]:
    form: Form | None = getattr(request.state, "form", None)
    typed = {} if form is None else _typed(form)
    texts = {name: "" if form is None else form.text(name) for name in ("comment", "actor")}
    fields = fields_of(approval.form, typed) if approval.form else []
    return {"fields": fields, "typed": texts, "problems": beside(fields, problems)}


def _typed(form: Form) -> dict[str, str]:
    return {name[len(PREFIX) :]: form.raw(name) for name in form.fields if name.startswith(PREFIX)}


def _vote(form: Form, parsed: Typed) -> dict[str, Any]:
    token = form.text("token")
    return {
        "form": parsed.context,
        "comment": form.raw("comment").strip(),
        "token": int(token) if token.isdecimal() and len(token) < 19 else None,
    }


def _problems(error: TaskerError) -> Mapping[str, str]:
    """Return the messages of a form that does not fit by the JSON pointers of its fields."""
    if not isinstance(error, InputInvalid):
        return NOTHING
    return {pointer(problem.path): problem.message for problem in reversed(error.problems)}


def _said(vote: CountedVote) -> str:
    rest = "" if vote.ended else f" {vote.approved} of {vote.quorum} have approved; it waits for more votes."
    return f"You {vote.decision} {vote.step}.{rest}"


def _action(request: Request, claims: LinkClaims) -> OperatorAction:
    """Return the action for the audit log, which has no link: whoever reads one could decide."""
    return OperatorAction(
        actor=claims.subject,
        proof="link",
        endpoint="POST /ui/decide/{link}",
        path=f"/ui/approvals/{claims.task_uuid}/{claims.step}",
        request_id=request.scope["state"]["request_id"],
        address=request.client.host if request.client else None,
    )


def _status(request: Request, error: Exception) -> int:
    return status_of(request, error) if isinstance(error, TaskerError) else 500


def _private(answer: Response) -> Response:
    answer.headers.update(PRIVATE)
    return answer


routes.routes.extend(links.routes)
