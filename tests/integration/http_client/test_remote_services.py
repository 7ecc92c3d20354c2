"""Services of a server answer the same values as the services beside the database."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, timedelta

import pytest
import pytest_asyncio

import tasker
from tasker.cli.remote.http_fleet import HttpFleet
from tasker.client import HttpClient
from tasker.errors import UsageError
from tasker.operations.analytics import ScalingSettings
from tasker.server.rendering import Json
from tasker.services.operators.pauses import PauseTarget
from tasker.services.submission.submit import Submission
from tasker.template import compile_text
from tasker.views.dead_letters import DeadLetter
from tasker.views.model import encode
from tasker.views.tasks import TaskReport
from tests.support.registered import submit_registered

LIMITED = """\
name: limited
namespace_name: elsewhere
version: 1.0.0
steps:
  - {name: check, handler: elsewhere.check, concurrency: {key: input.order_id, limit: 1}}
"""


@pytest_asyncio.fixture(loop_scope="module")
async def entry(app: tasker.App) -> DeadLetter:
    """The dead letter of a task that failed for good, with findings."""
    plan = (await app.plans.find("shop", "orders", "1.0.0")).plan
    task = await submit_registered(
        app, plan, Submission({"amount": -1}, idempotency_key="as beside"), on_duplicate="return"
    )
    await app.finished(task.task_uuid, timeout=20)
    entry = await app.dead_letters.of_task(task.task_uuid)
    return await app.dead_letters.update(entry.dlq_entry_uuid, notes="seen", metadata={"cause": {"n": 1}})


async def test_dead_letters_are_read_the_same(app: tasker.App, client: HttpClient, entry: DeadLetter) -> None:
    through, beside = HttpFleet(client).dead_letters, app.dead_letters

    assert await through.entry(entry.dlq_entry_uuid) == entry
    assert await through.of_task(entry.task_uuid) == entry
    assert await through.list(status="pending") == await beside.list(status="pending")
    assert [await through.stats(), await through.groups()] == [await beside.stats(), await beside.groups()]
    assert [each.dlq_entry_uuid for each in await through.queue()] == [entry.dlq_entry_uuid]
    assert (await through.staleness(limit=1))[:1] == (await beside.staleness(limit=1))[:1]


@pytest.mark.parametrize(("actor", "recorded"), [("ann", "ann"), (None, "ada")])
async def test_who_acts_is_the_actor_or_the_client(
    app: tasker.App, client: HttpClient, entry: DeadLetter, actor: str | None, recorded: str
) -> None:
    through = HttpFleet(client).dead_letters

    await through.retry(entry.dlq_entry_uuid, actor=actor, reason="again")
    closed = await through.entry(entry.dlq_entry_uuid)
    await app.finished(entry.task_uuid, timeout=20)

    assert (closed.resolution_status, closed.resolved_by) == ("manually_resolved", recorded)
    newest = await app.dead_letters.of_task(entry.task_uuid)
    updated = await through.update(newest.dlq_entry_uuid, status="cancelled", resolved_by=actor, notes="no")
    assert (updated.resolution_status, updated.resolution_notes) == ("cancelled", "no")


async def test_analytics_are_read_the_same(app: tasker.App, client: HttpClient, entry: DeadLetter) -> None:
    through, beside = HttpFleet(client).analytics, app.analytics
    there, here = await through.performance(hours=0.5), await beside.performance(hours=0.5)
    changing = {name: getattr(here, name) for name in ("calculated_at", "analysis_period_start", "health")}

    assert replace(there, **changing) == here
    found, slow = await through.bottlenecks(min_executions=1), await beside.bottlenecks(min_executions=1)
    assert (found.steps, found.tasks, found.utilization.counts) == (slow.steps, slow.tasks, slow.utilization.counts)
    assert found.recommendations == slow.recommendations
    assert await through.versions("shop", "orders") == await beside.versions("shop", "orders")
    settings = ScalingSettings(min_workers=3)
    assert [each.recommended_workers for each in await through.scaling(settings)] == [3]


async def test_what_ran_fewer_than_five_times_is_no_bottleneck(
    app: tasker.App, client: HttpClient, entry: DeadLetter
) -> None:
    for analytics in (HttpFleet(client).analytics, app.analytics):
        assert [each.name for each in (await analytics.bottlenecks(min_executions=1)).steps] == ["shop/orders/check"]
        assert (await analytics.bottlenecks()).steps == []


async def test_the_fleet_is_read_the_same(app: tasker.App, client: HttpClient) -> None:
    through = HttpFleet(client)
    target = PauseTarget.of(template="shop/orders")
    assert await through.pauses.pause(target, actor="ann", reason="look") is True
    assert await through.pauses.pause(target, actor="bob", reason="again") is False
    there, here = await through.pauses.list(), await app.pauses.list()
    actions = await through.operator_log.list(actor="ann", limit=5)

    assert there == here
    assert (there.pauses[0].actor, there.pauses[0].template, there.log[0].target) == ("ann", "orders", "shop/orders")
    assert await through.pauses.resume(target, actor="ann") == 0
    assert await through.pauses.resume(target, actor="ann") is None
    assert actions == await app.operator_log.list(actor="ann", limit=5)
    (worker,) = await through.workers.list()
    (row,) = await app.workers.list()
    beats = {"beat_at": row.beat_at, "beat_age_ms": row.beat_age_ms, "lease_left_ms": row.lease_left_ms}
    assert replace(worker, **beats) == row
    assert await client.list_handlers() == await client.list_handlers_of("shop") == await app.workers.handlers()
    assert [each.workers for each in await client.get_handler("shop", "shop.check")] == [[row.worker]]
    assert await client.get_handler("nowhere", "shop.check") == []
    report, beside = await through.queues.report(), await app.queues.report()
    assert [each.queue for each in report.queues] == [each.queue for each in beside.queues]
    assert (report.capabilities, report.remarks) == (beside.capabilities, beside.remarks)


async def test_limits_are_read_the_same(app: tasker.App, client: HttpClient) -> None:
    (plan,) = compile_text(LIMITED).plans
    await submit_registered(app, plan, Submission({"order_id": 7}))
    through, name = HttpFleet(client).limits, "step elsewhere/limited/check"
    async with asyncio.timeout(60):
        while not (await app.limits.list(name))[0].running:  # the timekeeper gives the permit
            await asyncio.sleep(0.02)
    (limit,) = await through.list(name)

    assert (limit.name, limit.most, limit.running, limit.more_keys) == (name, 1, 1, False)
    assert [(key.value, key.running, key.waiting) for key in limit.keys or ()] == [("7", 1, 0)]
    assert [limit] == await client.list_limits(name) == await app.limits.list(name)
    assert limit in await through.list(keys=1)
    assert await through.list("no such limit") == []


async def test_overview_and_doctor_are_read_the_same(app: tasker.App, client: HttpClient) -> None:
    through = HttpFleet(client)
    there, here = await through.fleet.overview(), await app.fleet.overview()
    report = await client.doctor()

    assert (there.queues, there.templates, there.pauses) == (here.queues, here.templates, here.pauses)
    assert [each.worker for each in there.processes] == [each.worker for each in here.processes]
    assert report.findings == await through.doctor.findings() == await app.doctor.findings()
    assert report.wrong is any(finding.wrong for finding in report.findings)


async def test_a_time_without_a_zone_is_in_utc(app: tasker.App, client: HttpClient) -> None:
    await app.pauses.pause(PauseTarget.of("shop"), actor="ann", reason="look")
    await app.pauses.resume(PauseTarget.of("shop"), actor="ann")
    (newest, *_) = await client.list_operator_actions(limit=1)

    since = newest.requested_at.astimezone(UTC).replace(tzinfo=None)
    assert newest in await client.list_operator_actions(since=since)
    assert await client.list_operator_actions(since=since + timedelta(seconds=60)) == []


async def test_tasks_steps_and_templates_are_read_the_same(
    app: tasker.App, client: HttpClient, entry: DeadLetter
) -> None:
    through, task = HttpFleet(client), entry.task_uuid
    steps = await app.views.steps(task)

    assert await client.get_task(task) == await app.views.task(task)
    reports = [await through.tasks.report(task), await app.tasks.report(task)]
    assert reports[0].steps.keys() == reports[1].steps.keys() == {"check", "charge"}
    assert len({Json(encode(TaskReport, report)).body for report in reports}) == 1
    assert await through.tasks.history(task) == await app.tasks.history(task)
    assert await through.views.steps(task) == steps
    assert await through.views.step(task, steps[0].step_uuid) == steps[0]
    assert await through.views.audit(task) == await app.views.audit(task)
    assert await client.get_task_details(task) == await app.views.details(task)
    assert await client.get_template("shop", "orders", "1.0.0") == await app.template_texts.detail(
        "shop", "orders", "1.0.0"
    )
    there, here = await through.tasks.explain(task), await app.tasks.explain(task)
    assert replace(there, at=here.at, reasons=here.reasons) == here


async def test_what_was_registered_is_answered_the_same(app: tasker.App, client: HttpClient) -> None:
    there = await client.register_templates(LIMITED, validate_only=True)
    assert there == await app.template_texts.register(LIMITED, validate_only=True)
    assert (there.registered, [each.name for each in there.templates]) == (False, ["limited"])


async def test_beginnings_of_identifiers_have_bounds_everywhere(app: tasker.App, client: HttpClient) -> None:
    for read in (client.list_identifiers, app.tasks.starting_with):
        with pytest.raises(UsageError):
            await read("x")
        with pytest.raises(UsageError):
            await read("01", limit=101)
