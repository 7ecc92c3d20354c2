"""Tenants: an attribute of a task, from the submission or from its input."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

import tasker
from tasker.errors import InputInvalid, UsageError
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission
from tasker.template import compile_text
from tasker.template.plan import Plan

TEMPLATE = """
name: load
namespace: imports
version: 1.0.0
{more}
steps:
  - {{name: fetch, handler: nobody.serves_it}}
"""
FROM_INPUT = "tenant: {from: input.customer.tenant}"


def compiled(more: str = "") -> Plan:
    (plan,) = compile_text(TEMPLATE.format(more=more)).plans
    return plan


@pytest.fixture
def app(database_url: str) -> Iterator[tasker.SyncApp]:
    with tasker.SyncApp(database_url, work=False) as running:
        yield running


def listed(app: tasker.SyncApp, tenant: str) -> set[str]:
    return {task.task_uuid for task in app.tasks.list(tenant=tenant)}


def test_every_way_to_submit_takes_a_tenant_and_the_list_filters_by_it(app: tasker.SyncApp) -> None:
    plan = compiled()
    request = Submission({"n": 1}, tenant="acme")
    tasks = {app.submit(plan, {"n": 2}, tenant="acme").task_uuid}
    tasks |= {each.task_uuid or "" for each in app.submit_many(plan, [request])}
    order = TemplateSubmission("imports", "load", None, Submission({"n": 3}, tenant="acme"))
    tasks |= {app.submissions.submit(order).task_uuid}
    with psycopg.connect(app.database_url) as connection:
        tasks |= {app.submit_in(connection, plan, {"n": 4}, tenant="acme").task_uuid}
        tasks |= {tasker.submit_in(connection, plan, {"n": 5}, tenant="acme").task_uuid}
    app.submit(plan, {"n": 6}, tenant="other")
    app.submit(plan, {"n": 7})

    assert listed(app, "acme") == tasks
    assert [task.task_uuid for task in app.tasks.list(tenant="acme", open=True, namespace="imports", limit=2)] == (
        sorted(tasks, reverse=True)[:2]
    )
    assert app.tasks.report(tasks.pop()).tenant == "acme"


def test_a_template_takes_it_from_the_input(app: tasker.SyncApp) -> None:
    plan = compiled(FROM_INPUT)
    task = app.submit(plan, {"customer": {"tenant": "acme"}})

    assert listed(app, "acme") == {task.task_uuid}
    assert app.submit(plan, {"customer": {"tenant": "acme"}, "n": 1}, tenant="acme").created
    with pytest.raises(UsageError, match="tenant: the submission says 'other', the input 'acme'"):
        app.submit(plan, {"customer": {"tenant": "acme"}, "n": 2}, tenant="other")
    with pytest.raises(InputInvalid, match=r"\$\.customer\.tenant: .* `tenant`"):
        app.submit(plan, {"customer": {}})
    with pytest.raises(UsageError, match="tenant: expected a text, found 7"):
        app.submit(plan, {"customer": {"tenant": 7}})


@pytest.mark.parametrize("tenant", ["", "a\nb", "x" * 101, 7])
def test_a_tenant_is_a_printable_name(app: tasker.SyncApp, tenant: object) -> None:
    with pytest.raises(UsageError, match="tenant: "):
        app.submit(compiled(), {}, tenant=tenant)  # type: ignore[arg-type]


def test_tenants_share_no_identity_and_no_unique_key(app: tasker.SyncApp) -> None:
    for plan in (compiled(), compiled("unique: while_running")):
        tasks = [app.submit(plan, {"day": plan.unique is None}, tenant=tenant) for tenant in ("acme", "other", None)]
        assert all(task.created for task in tasks)
    keyed = [app.submit(compiled(), {"n": n}, idempotency_key="k", tenant=str(n)) for n in range(2)]
    assert all(task.created for task in keyed)
    assert [task.task_uuid for task in app.tasks.list(idempotency_key="k", tenant="1")] == [keyed[1].task_uuid]


def test_a_task_without_a_tenant_has_none(app: tasker.SyncApp) -> None:
    task = app.submit(compiled(), {})
    assert app.tasks.report(task.task_uuid).tenant is None
