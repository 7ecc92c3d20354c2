"""The expense approval: decided by one person or two, rejected, reminded, escalated, and not decided at all."""

from __future__ import annotations

from typing import Any

import pytest

import tasker
from tasker.errors import NotPermitted
from tasker.services.approvals import Approver
from tests.acceptance.examples.workflow_case import WORKFLOWS, load_input
from tests.support.waiting import until

FOLDER = WORKFLOWS / "expense_approval"
SMALL, LARGE = {"amount": 240}, {"amount": 8000}
FORM = {"cost_center": "travel"}


@pytest.fixture(scope="module")
def app(module_database_url: str) -> Any:
    with tasker.SyncApp(database_url=module_database_url, handlers=[str(FOLDER)]) as running:
        yield running


def asked(app: tasker.SyncApp, purpose: str, **values: Any) -> str:
    """An expense that waits for its decision."""
    task = app.submit(FOLDER, load_input("expense_approval") | {"purpose": purpose} | values).task_uuid
    until(lambda: app.tasks.report(task).waiting_for == ["person"], "it waits")
    return task


def test_a_small_expense_is_paid_after_the_manager_approved(app: tasker.SyncApp) -> None:
    task = asked(app, "small", **SMALL)
    app.decide(task, "manager_approves", "approved", by="ann", form=FORM)

    report = app.wait(task, timeout=60)

    assert report.status == "complete"
    assert report.steps["pay"].result == {"paid": 240, "to": "kim"}
    assert "tell" not in report.steps


def test_a_rejection_is_told_with_its_reason(app: tasker.SyncApp) -> None:
    task = asked(app, "rejected", **SMALL)
    app.decide(task, "manager_approves", "rejected", by="ann", comment="no receipt")

    report = app.wait(task, timeout=60)

    assert report.steps["tell"].result == {"told": "kim", "text": "rejected by ann: no receipt"}
    assert "pay" not in report.steps


def test_a_large_expense_needs_two_different_persons(app: tasker.SyncApp) -> None:
    task = asked(app, "large", **LARGE)
    first = app.decide(task, "two_approve", "approved", by="ann", form=FORM | {"budgeted": True})
    assert (first.ended, first.approved, first.quorum) == (False, 1, 2)
    app.decide(task, "two_approve", "approved", by="bob", form=FORM | {"budgeted": True})

    report = app.wait(task, timeout=60)

    assert report.steps["decided"].result["text"] == "approved by ann and bob"
    assert report.steps["pay"].state == "complete"


def test_who_is_not_asked_does_not_decide(app: tasker.SyncApp) -> None:
    task = asked(app, "others", **SMALL)

    with pytest.raises(NotPermitted, match="kim may not decide"):
        app.decide(task, "manager_approves", "approved", by="kim", form=FORM)

    assert [row.task_uuid for row in app.approvals.list(approver=Approver("ann", ()), template="expense_approval")]
    app.decide(task, "manager_approves", "rejected", by="ann")
    app.wait(task, timeout=60)
