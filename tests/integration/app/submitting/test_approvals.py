"""Approvals through a program: what is shown, who decides, what the task does then."""

from __future__ import annotations

from typing import Any

import pytest

import tasker
from tasker.errors import ApprovalDecided, ApprovalNotFound, InputInvalid, NotPermitted, UsageError
from tasker.services.approvals import Approver
from tasker.template import compile_text
from tasker.template.plan import Plan
from tests.support.waiting import until

EXPENSE = """
name: expense
namespace: caller
version: 1
input_schema:
  type: object
  required: [name, amount, iban]
  properties: {name: {type: string}, amount: {type: integer}, iban: {type: string, x-sensitive: true}}
steps:
  - name: approve
    type: approval
    description: Approve an expense
    from: {subjects: [ann, bob]}
    form:
      type: object
      required: [cost_center]
      properties: {cost_center: {type: string}, limit: {type: integer, minimum: 1}}
    inputs:
      amount: "${input.amount}"
      iban: "${input.iban}"
      half: "${input.amount / 0}"
    timeout: 2d
  - name: pay
    handler: greet
    dependencies: [approve]
    when: steps.approve.approved
    inputs: {name: "${steps.approve.form.cost_center}"}
"""


def planned(text: str = EXPENSE) -> Plan:
    (plan,) = compile_text(text).plans
    return plan


def asked(app: tasker.SyncApp, plan: Plan | None = None, **more: Any) -> str:
    """A task that waits for its approval."""
    context = {"name": "x", "amount": 120, "iban": "DE02-1203", **more}
    task = app.submit(plan or planned(), context).task_uuid
    until(lambda: app.tasks.report(task).waiting_for == ["person"], "it waits")
    return task


def test_an_approval_is_shown_and_decided(app: tasker.SyncApp) -> None:
    task = asked(app)
    (row,) = app.approvals.list(approver=Approver("ann", ()))
    assert (row.task_uuid, row.step, row.template, row.description) == (
        task,
        "approve",
        "expense",
        "Approve an expense",
    )
    assert (row.approved, row.quorum, row.subjects, row.permissions) == (0, 1, ["ann", "bob"], [])
    assert app.approvals.list(approver=Approver("eve", ())) == []

    detail = app.approvals.get(task, "approve")
    assert detail.inputs == {"amount": 120, "iban": "DE02-1203"}
    assert [*detail.problems] == ["half"]
    assert [*(detail.form or {})["properties"]] == ["cost_center", "limit"]
    counted = app.decide(task, "approve", "approved", by="ann", form={"cost_center": "R17"}, comment="ok")

    assert (counted.ended, counted.outcome, counted.approved) == (True, "approved", 1)
    report = app.wait(task, timeout=60)
    assert report.status == "complete"
    assert report.steps["approve"].result["form"] == {"cost_center": "R17"}
    assert report.steps["pay"].state == "complete"
    assert app.approvals.list() == []
    (vote,) = app.approvals.get(task, "approve").votes
    assert (vote.by, vote.decision, vote.comment, vote.via) == ("ann", "approved", "ok", "program")


def test_a_rejection_needs_no_form_and_stops_what_is_below(app: tasker.SyncApp) -> None:
    task = asked(app)

    app.decide(task, "approve", "rejected", by="bob", comment="no receipt")

    report = app.wait(task, timeout=60)
    assert (report.status, "pay" in report.steps) == ("complete", False)
    assert report.steps["approve"].result["approved"] is False


def test_bad_votes_are_refused_with_the_reason(app: tasker.SyncApp) -> None:
    task = asked(app)
    with pytest.raises(InputInvalid, match="cost_center"):
        app.decide(task, "approve", "approved", by="ann")
    with pytest.raises(InputInvalid, match="expected at least 1"):
        app.decide(task, "approve", "rejected", by="ann", form={"limit": 0})
    with pytest.raises(NotPermitted, match="eve may not decide 'approve'") as refused:
        app.decide(task, "approve", "rejected", by="eve")
    assert refused.value.hint == "`tasker approval show` names who may decide"
    with pytest.raises(UsageError, match="invalid decision 'yes'"):
        app.decide(task, "approve", "yes", by="ann")
    with pytest.raises(ApprovalNotFound, match="no approval 'pay'"):
        app.decide(task, "pay", "approved", by="ann")
    app.decide(task, "approve", "rejected", by="ann")
    with pytest.raises(ApprovalDecided, match=r"ann has rejected 'approve' already, at 20") as again:
        app.decide(task, "approve", "approved", by="ann", form={"cost_center": "R1"})
    assert [vote["by"] for vote in again.value.votes] == ["ann"]
    with pytest.raises(ApprovalDecided, match="'approve' is rejected already, by ann at"):
        app.decide(task, "approve", "approved", by="bob", form={"cost_center": "R1"})


@pytest.mark.parametrize(
    ("word", "status", "ran"),
    [("fail", "error", []), ("continue", "complete", ["pay"]), ("{run: escalate}", "complete", ["escalate"])],
)
def test_a_rejection_and_a_timeout_are_failure_paths(
    app: tasker.SyncApp, word: str, status: str, ran: list[str]
) -> None:
    text = EXPENSE.replace("timeout: 2d", f"timeout: 2d\n    on_reject: fail\n    on_timeout: {word}")
    text = text.replace("    when: steps.approve.approved\n", "").replace("${steps.approve.form.cost_center}", "x")
    text += "  - {name: escalate, handler: greet}\n" if "run" in word else ""
    task = asked(app, planned(text))

    counted = app.decide(task, "approve", "rejected", by="ann", comment="too much")

    report = app.wait(task, timeout=60)
    assert (counted.outcome, report.status, report.steps["approve"].state) == ("rejected", status, "error")
    assert [name for name, step in report.steps.items() if step.state == "complete"] == ran
    failure = report.steps["approve"].failures[-1]
    assert (failure["error_type"], failure["message"]) == ("rejected", "rejected by ann: too much")
