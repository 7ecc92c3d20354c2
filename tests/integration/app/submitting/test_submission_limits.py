"""Quotas of tenants and limits of submissions: refused with a time to try again, and nothing is created."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

import tasker
from tasker.app.configured import UNCONFIGURED, Configured
from tasker.db.connection import Connection
from tasker.errors import QuotaExceeded
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission
from tasker.settings.check import check
from tasker.settings.http import OrchestrationWeb
from tasker.settings.tenants import TenantQuota, label_of, quota_of
from tasker.template import compile_text
from tasker.template.plan import Plan

TEMPLATE = """
name: load
namespace: imports
version: 1.0.0
identity_strategy: always_unique
{more}
steps:
  - {{name: fetch, handler: nobody.serves_it}}
"""
QUOTAS = {
    "default": TenantQuota(max_open_tasks=2),
    "acme": TenantQuota(max_submits_per_minute=3, max_open_tasks=100, labelled=True),
}


def compiled(more: str = "") -> Plan:
    (plan,) = compile_text(TEMPLATE.format(more=more)).plans
    return plan


def configured(**more: Any) -> Configured:
    return replace(UNCONFIGURED, **{"tenants": QUOTAS, **more})


@pytest.fixture
def app(database_url: str) -> Iterator[tasker.SyncApp]:
    with tasker.SyncApp(database_url, work=False, configuration=configured()) as running:
        yield running


def set_back(app: tasker.SyncApp, seconds: int) -> None:
    """Let time pass for the buckets."""
    with psycopg.connect(app.database_url) as connection:
        connection.execute(
            "update tasker.submission_buckets set full_at = full_at - make_interval(secs => %s)", [seconds]
        )


def test_a_tenant_has_so_many_open_tasks(app: tasker.SyncApp) -> None:
    first, _ = (app.submit(compiled(), {}, tenant="other") for _ in range(2))
    with pytest.raises(QuotaExceeded) as caught:
        app.submit(compiled(), {}, tenant="other")
    assert str(caught.value) == "tenant other has at most 2 open tasks"
    assert (caught.value.retry_after, caught.value.hint) == (10, "submit again in 10 s")
    assert app.submit(compiled(), {}, tenant="another").created
    assert app.submit(compiled(), {}).created, "without a tenant there is no quota"

    app.tasks.cancel(first.task_uuid)
    assert app.submit(compiled(), {}, tenant="other").created
    with pytest.raises(QuotaExceeded, match="at most 2 open tasks"):
        app.submit_many(compiled(), [Submission({}, tenant="third")] * 3)


def test_a_tenant_submits_so_many_in_a_minute_and_then_one_by_one(app: tasker.SyncApp) -> None:
    app.submit_many(compiled(), [Submission({}, tenant="acme")] * 2)
    assert app.submit(compiled(), {}, tenant="acme").created
    with pytest.raises(QuotaExceeded, match="tenant acme submits at most 3 tasks per minute") as caught:
        app.submit(compiled(), {}, tenant="acme")
    assert caught.value.retry_after is not None
    assert 1 <= caught.value.retry_after <= 20

    set_back(app, 21)
    assert app.submit(compiled(), {}, tenant="acme").created
    with pytest.raises(QuotaExceeded):
        app.submit(compiled(), {}, tenant="acme")
    set_back(app, 3600)
    with pytest.raises(QuotaExceeded) as caught:
        app.submit_many(compiled(), [Submission({}, tenant="acme")] * 4)
    assert caught.value.hint == "submit at most 3 tasks at once"
    assert len(app.submit_many(compiled(), [Submission({}, tenant="acme")] * 3)) == 3


def test_a_template_is_submitted_so_often_in_all_versions(app: tasker.SyncApp) -> None:
    plan = compiled("max_submits_per_minute: 1")
    assert app.submit(plan, {}).created
    answers = app.submissions.submit_many([TemplateSubmission("imports", "load", None, Submission({}))] * 2)
    assert [type(each) for each in answers] == [QuotaExceeded] * 2
    with pytest.raises(QuotaExceeded, match="at most 1 tasks of imports/load are submitted per minute"):
        app.submit(plan, {})


def test_what_one_limit_refuses_uses_nothing_of_the_others(app: tasker.SyncApp) -> None:
    plan = compiled("max_submits_per_minute: 2")
    app.submit_many(plan, [Submission({})] * 2)
    for _ in range(5):
        with pytest.raises(QuotaExceeded, match="imports/load"):
            app.submit(plan, {}, tenant="acme")
    assert len(app.submit_many(compiled(), [Submission({}, tenant="acme")] * 3)) == 3


def test_a_client_submits_so_often(database_url: str) -> None:
    with tasker.SyncApp(
        database_url, work=False, configuration=configured(http=OrchestrationWeb(max_submits_per_minute=1))
    ) as app:
        app.submit(compiled(), {})
        orders = [TemplateSubmission("imports", "load", None, Submission({}), client) for client in ("a", "b", None)]
        assert all(app.submissions.submit(order).created for order in orders)
        with pytest.raises(QuotaExceeded, match="the client a submits at most 1 tasks per minute"):
            app.submissions.submit(orders[0])
        assert app.submissions.submit(orders[2]).created


def test_a_caller_s_transaction_is_not_limited_and_waits_for_no_bucket(app: tasker.SyncApp) -> None:
    with psycopg.connect(app.database_url) as connection:
        for _ in range(4):
            app.submit_in(connection, compiled(), {}, tenant="other")
        connection.commit()
    with pytest.raises(QuotaExceeded):
        app.submit(compiled(), {}, tenant="other")


def test_submissions_without_a_limit_ask_nothing(app: tasker.SyncApp, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    original = Connection.execute

    async def execute(self: Connection, statement: str, params: Any = None) -> Any:
        asked.append(statement)
        return await original(self, statement, params)

    monkeypatch.setattr(Connection, "execute", execute)
    app.submit(compiled(), {})
    assert not any("admit_v1" in statement for statement in asked)
    app.submit(compiled(), {}, tenant="acme")
    assert sum("admit_v1" in statement for statement in asked) == 1


def test_names_of_tenants_in_metrics_are_bounded() -> None:
    assert [label_of(QUOTAS, tenant) for tenant in ("acme", "other", "a", "b")] == ["acme", "other", "other", "other"]


def test_a_tenant_s_own_quota_overrides_the_default_setting_by_setting() -> None:
    quotas = check({"tenants": {"default": {"max_open_tasks": 5, "max_submits_per_minute": 7}, "acme": {}}}).usable
    own = {**quotas.tenants, "acme": TenantQuota(max_open_tasks=0)}

    assert quota_of(own, "acme") == TenantQuota(max_open_tasks=0, max_submits_per_minute=7)
    assert quota_of(own, "other") == TenantQuota(max_open_tasks=5, max_submits_per_minute=7)
    (problem,) = check({"tenants": {"acme": {"max_open_task": 1}}}).problems
    assert problem.fix == "Did you mean tenants.acme.max_open_tasks?"
