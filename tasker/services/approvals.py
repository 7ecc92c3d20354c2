"""Approvals: decisions of persons for which steps wait (`type: approval`)."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tasker.dataclasses import dataclass
from tasker.db.sql_files import query
from tasker.engine.calls import Engine
from tasker.engine.exchange import CLAIM_BYTES, inputs_of
from tasker.engine.failure_writes import with_plan
from tasker.engine.plans import PlanStore
from tasker.errors import (
    ApprovalDecided,
    ApprovalNotFound,
    InputInvalid,
    NotPermitted,
    StateMachineError,
    UsageError,
)
from tasker.errors.remedies import remedy, see
from tasker.handlers.step_inputs import scope_of
from tasker.json_values import encode, require_findable
from tasker.services.approval_links import LinkClaims, LinkSigner
from tasker.services.audit import audited
from tasker.services.tasks.read import checked, names
from tasker.services.viewer import Redaction, Viewed
from tasker.settings.approvals import Approvals as LinkSettings
from tasker.template.names import MOST_SUBJECT
from tasker.template.plan import Plan, StepPlan
from tasker.views.approvals import Approval, ApprovalDetail, ApprovalLink, ApprovalVote, CountedVote

DECISIONS: Final = ("approved", "rejected")
MOST_COMMENT: Final = 4000
MOST_FORM: Final = 100_000
"""Bytes of a filled form."""
REPLANS: Final = 20
OF_SEVERAL_FIELDS: Final = (
    *("required", "minProperties", "dependentRequired", "dependentSchemas"),
    *("allOf", "anyOf", "oneOf", "not", "if", "then", "else"),
)
"""Keywords by which a form says which of its fields there have to be, by themselves or with others."""


@dataclass(frozen=True, slots=True)
class Approver:
    """Person who decides.

    `permissions` are those that they have, each with the namespace to which it is limited or None; a permission None
    stands for all. `permissions` None: they have all, or nothing is known about them, as in a program.
    """

    name: str
    permissions: Collection[tuple[str | None, str | None]] | None = None

    @property
    def granted(self) -> list[dict[str, str | None]] | None:
        """Permissions as `tasker.may_decide` takes them."""
        return None if self.permissions is None else [{"p": word, "ns": where} for word, where in self.permissions]

    @property
    def words(self) -> list[str] | None:
        """Words of `step_waits.approvers` that stand for this person; None: these cannot be listed."""
        if self.permissions is None or any(word is None for word, _ in self.permissions):
            return None
        return ["*", f"s:{self.name}", *(f"p:{word}" for word, _ in self.permissions)]


class Approvals(Viewed):
    """Use cases of approvals. An approval is named by its task and step; unknown ones raise `ApprovalNotFound`."""

    def __init__(
        self,
        engine: Engine,
        plans: PlanStore,
        redaction: Redaction | None = None,
        links: LinkSettings | None = None,
    ) -> None:
        self._engine, self._plans, self._redaction = engine, plans, redaction
        self._links = links or LinkSettings()
        self._signer = LinkSigner(self._links.link_keys)

    async def list(
        self,
        *,
        approver: Approver | None = None,
        namespace: str | None = None,
        template: str | None = None,
        after: str | None = None,
        limit: int = 50,
        namespaces: Collection[str] | None = None,
        tenants: Collection[str] | None = None,
    ) -> Sequence[Approval]:
        """Return open approvals, oldest first, behind that of the step `after`.

        With `approver` only those that this person may decide and has not. `namespaces` and `tenants` are those
        permitted; None: all.
        """
        for what, text in (("namespace", namespace), ("template", template)):
            require_findable(text or "", what)
        params: dict[str, Any] = {"namespace": namespace, "template": template, "limit": limit}
        params |= {"namespaces": names(namespaces), "tenants": names(tenants)}
        params["after"] = None if after is None else checked(after)
        mine = ""
        if approver is not None:
            params |= {"by": approver.name, "permissions": json.dumps(approver.granted), "words": approver.words}
            mine = query("approvals", "mine") + (query("approvals", "named") if approver.words is not None else "")
        rows = await self._engine.connection.execute(query("approvals", "page").format(mine=mine), params)
        return [Approval(**await self._summary(row)) for (row,) in rows]

    async def get(
        self, task_uuid: str, step: str, *, approver: Approver | None = None, token: int | None = None
    ) -> ApprovalDetail:
        """Return the newest approval of a step, open or not, or the one with this token.

        With `approver`, raises `NotPermitted` if this person may not decide it.
        """
        row = await self._row(task_uuid, step, approver, token)
        plan = await self._plans.get(row["template_id"])
        planned = plan.steps[row["ordinal"]]
        inputs, problems = await self._inputs(plan, planned, row)
        votes = [ApprovalVote(**{**vote, "at": datetime.fromisoformat(vote["at"])}) for vote in row["votes"]]
        detail = ApprovalDetail(
            **await self._summary({**row, "step_uuid": row["workflow_step_uuid"], "requested_at": row["since"]}, votes),
            token=row["token"],
            outcome=row["outcome"],
            ended_at=_time(row["ended_at"]),
            reject=row["reject"],
            form=(planned.wait or {}).get("form"),
            inputs=inputs,
            problems=problems,
            votes=votes,
        )
        return await self._shown(checked(task_uuid), detail)

    @audited("App.decide")
    async def decide(
        self,
        task_uuid: str,
        step: str,
        decision: str,
        *,
        actor: str,
        form: Mapping[str, Any] | None = None,
        comment: str = "",
        approver: Approver | None = None,
        token: int | None = None,
        via: str = "program",
        proof: str | None = None,
    ) -> CountedVote:
        """Approve or reject, as the person `actor`; the vote that decides ends the step.

        `decision` is `approved` or `rejected`. `form` must fit the form of the step; when rejecting, fields may be
        missing. `token` is that of the request that the person saw. Raises `UsageError`, `InputInvalid` for a form
        that does not fit, `NotPermitted` if this person may not decide, `ApprovalDecided` if they have decided or the
        approval is over.
        """
        person = approver or Approver(actor)
        form = form or {}
        args = _checked_vote(person.name, decision, comment, form)
        row = await self._row(task_uuid, step, person, token)
        plan = await self._plans.get(row["template_id"])
        _check_form(plan.steps[row["ordinal"]], decision, form)
        args |= {"task": checked(task_uuid), "step": step, "token": token, "permissions": person.granted}
        args |= {"via": via, "proof": proof}
        for _ in range(REPLANS):
            answer = await self._engine.call("decide", args)
            if answer.get("replan") is None:
                return _counted(answer, args, row["quorum"])
            args["planned"] = await with_plan(self._engine, self._plans, answer["replan"])
        raise StateMachineError(f"the graph of task {task_uuid} changed during every attempt; try again")

    @audited("App.approvals.link")
    async def link(self, task_uuid: str, step: str, subject: str, *, actor: str | None = None) -> ApprovalLink:
        """Return a signed link with which `subject` decides about the open request, once, without signing in.

        `actor` is who makes it, for the log of operators; None: the user of the operating system.
        Whoever has the link decides as that person: send it to them alone. Raises `UsageError` without a key in the
        configuration, `NotPermitted` for a person who may not decide, `ApprovalDecided` if it is over.
        """
        _require_name(subject)
        row = await self._row(task_uuid, step, Approver(subject), None)
        if row["outcome"] is not None:
            raise _decided({"step": step, "by": subject}, row, voted=False)
        end, expires = _end(row["until"]), datetime.now(UTC) + timedelta(hours=self._links.link_hours)
        expires = expires if end is None else min(end, expires)
        claims = LinkClaims(checked(task_uuid), step, row["token"], subject, math.ceil(expires.timestamp()))
        path = f"/ui/decide/{self._signer.sign(claims)}"
        return ApprovalLink(self._links.url.rstrip("/") + path, subject, expires)

    def claims_of(self, link: str) -> LinkClaims:
        """Return what the text of a link permits. Raises `ApprovalNotFound` if it is not valid or has expired."""
        return self._signer.verified(link, datetime.now(UTC))

    async def _row(self, task_uuid: str, step: str, approver: Approver | None, token: int | None) -> dict[str, Any]:
        require_findable(step, "step")
        person = approver or Approver("")
        params = {"task": checked(task_uuid), "step": step, "token": token, "by": person.name}
        params["permissions"] = json.dumps(person.granted)
        rows = await self._engine.connection.execute(query("approvals", "one"), params)
        if not rows:
            raise _missing(task_uuid, step)
        row: dict[str, Any] = rows[0][0]
        if approver is not None and not row["may"]:
            raise _not_an_approver(approver.name, step)
        return row

    async def _summary(self, row: Mapping[str, Any], votes: Sequence[ApprovalVote] | None = None) -> dict[str, Any]:
        plan = await self._plans.get(row["template_id"])
        same = ("task_uuid", "step", "step_uuid", "namespace", "template", "quorum", "subjects", "permissions")
        counts = {word: sum(vote.decision == word for vote in votes or ()) for word in DECISIONS}
        return {
            **{name: row[name] for name in same},
            **(counts if votes is not None else {word: row[word] for word in DECISIONS}),
            "description": plan.steps[row["ordinal"]].description,
            "requested_at": _time(row["requested_at"]),
            "until": _end(row["until"]),
            "escalated_at": _time(row["escalated_at"]),
        }

    async def _inputs(
        self, plan: Plan, step: StepPlan, row: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        """Return what the template shows, evaluated from what the viewer may see."""
        if step.inputs is None:
            return {}, {}
        task_uuid = row["task_uuid"]
        answer = await self._engine.read("inputs", {"steps": [row["workflow_step_uuid"]], "max_bytes": CLAIM_BYTES})
        if (task := inputs_of(answer).get(task_uuid)) is None:
            return {}, {"inputs": "they are too large to be shown"}
        results = [{"name": name, "result": result} for name, (_, result) in task.results.items()]
        data = {"task_uuid": task_uuid, "context": dict(task.context), "steps": results}
        seen = await self._shown(task_uuid, data)
        shown = {result["name"]: result["result"] for result in seen["steps"]}
        scope = scope_of(plan, task_uuid, task.correlation_id, max(1, row["attempts"]), seen["context"], shown)
        return plan.input_mappings[step.name].evaluate_each(scope)


def _require_name(by: str) -> None:
    if not 1 <= len(by) <= MOST_SUBJECT or not by.isprintable():
        raise UsageError(f"expected the name of a person of at most {MOST_SUBJECT} characters, got {by!r:.60}")


def _checked_vote(by: str, decision: str, comment: str, form: Mapping[str, Any]) -> dict[str, Any]:
    if decision not in DECISIONS:
        raise UsageError(f"invalid decision {decision!r:.60}", hint="write approved or rejected")
    _require_name(by)
    if len(comment) > MOST_COMMENT:
        raise UsageError(f"the comment has {len(comment):,} characters, at most {MOST_COMMENT:,} are possible")
    require_findable(comment, "comment")
    encoded = encode(dict(form))
    if len(encoded.text) > MOST_FORM:
        raise UsageError(f"the form has {len(encoded.text):,} bytes, at most {MOST_FORM:,} are possible")
    return {"by": by, "decision": decision, "comment": comment, "form": encoded}


def _check_form(step: StepPlan, decision: str, form: Mapping[str, Any]) -> None:
    from tasker.template.schema_check import check_result  # lazy import, needed by few processes

    schema = (step.wait or {}).get("form")
    if schema is None:
        if form:
            raise UsageError(f"the approval {step.name!r} has no form", hint="leave `form` out; a comment is possible")
        return
    if decision == "rejected":
        schema = optional_form(schema)
    if problems := check_result(schema, dict(form)):
        lines = "\n".join(f"  {problem.path}: {problem.message}" for problem in problems)
        raise InputInvalid(f"the form does not fit:\n{lines}", problems=problems)


def optional_form(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a form whose fields may be missing, also those of objects in it: only what is there has
    to fit."""
    kept = {key: value for key, value in schema.items() if key not in OF_SEVERAL_FIELDS}
    fields = kept.get("properties")
    if isinstance(fields, Mapping):
        kept["properties"] = {
            name: optional_form(field) if isinstance(field, Mapping) else field for name, field in fields.items()
        }
    return kept


def _counted(answer: Mapping[str, Any], args: Mapping[str, Any], quorum: int) -> CountedVote:
    task_uuid, step = args["task"], args["step"]
    if answer.get("missing"):
        raise _missing(task_uuid, step)
    if answer.get("forbidden"):
        raise _not_an_approver(args["by"], step)
    state = answer["approval"]
    if not answer.get("counted"):
        raise _decided(args, state, voted=bool(answer.get("voted")))
    approved = sum(vote["decision"] == "approved" for vote in state["votes"])
    return CountedVote(task_uuid, step, args["decision"], answer["ended"], state["outcome"], approved, quorum)


def _decided(args: Mapping[str, Any], state: Mapping[str, Any], *, voted: bool) -> ApprovalDecided:
    step = args["step"]
    own = next((vote for vote in state["votes"] if voted and vote["by"] == args["by"]), None)
    if own is not None:
        message = f"{own['by']} has {own['decision']} {step!r} already, at {own['at'][:19]}Z"
    elif state["outcome"] in DECISIONS:
        last = state["votes"][-1]
        message = f"{step!r} is {state['outcome']} already, by {last['by']} at {last['at'][:19]}Z"
    else:
        message = f"{step!r} waits for no decision any more: it ended as {state['outcome'] or 'a newer request'}"
    decided = [{"by": vote["by"], "decision": vote["decision"], "at": vote["at"]} for vote in state["votes"]]
    return ApprovalDecided(message, outcome=state["outcome"], votes=decided, hint="nothing was changed")


def _missing(task_uuid: str, step: str) -> ApprovalNotFound:
    message = f"task {task_uuid} has no approval {step!r:.80}, or has not reached it"
    return ApprovalNotFound(message, hint=see("tasker task show"))


def _not_an_approver(name: str, step: str) -> NotPermitted:
    return NotPermitted(
        f"{name} may not decide {step!r:.80}: its `from` names neither them nor a permission of theirs",
        hint=remedy("{} names who may decide", "tasker approval show"),
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _end(text: str | None) -> datetime | None:
    return None if text is None or "infinity" in text else datetime.fromisoformat(text)
