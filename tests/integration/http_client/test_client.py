"""What a program gets from a server: the published types, the errors of `App`, every route."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

import tasker
from tasker.cli.remote.http_fleet import HttpFleet
from tasker.client import HttpClient, SyncHttpClient, Task
from tasker.client.calls.tasks import TaskCalls
from tasker.errors import (
    ApprovalNotFound,
    DeadLetterNotFound,
    DuplicateTask,
    InputInvalid,
    ScheduleNotFound,
    StateMachineError,
    StepNotFound,
    TaskerError,
    TaskNotFound,
    TemplateError,
    TemplateNotFound,
    UsageError,
)
from tasker.operations.analytics import ScalingSettings
from tasker.operations.dead_letters import FailureSelection
from tasker.server.application import described
from tasker.server.sockets import HttpServer
from tasker.template import compile_text
from tests.integration.api.program import ORDERS, WAITING, order
from tests.support.deployments import REFUND, token_of_refund

NOBODY = "01900000-0000-7000-8000-000000000000"


NIGHTLY = "shop/orders/nightly"


async def test_a_task_is_created_waited_for_and_read(client: HttpClient) -> None:
    created = await client.create_task("orders", namespace="shop", context={"amount": 11}, tags=["x"], priority=3)

    ended = await client.wait(created.task_uuid, timeout=30)

    assert isinstance(created, Task)
    assert (ended.status, ended.context, ended.tags, ended.priority) == ("complete", {"amount": 11}, ["x"], 3)
    assert (ended.initiator, ended.source_system) == ("ada", "tests")
    assert [step.name for step in ended.steps] == ["check", "charge"]
    steps = await client.list_task_steps(created.task_uuid)
    assert [(step.name, step.current_state) for step in steps] == [("check", "complete"), ("charge", "complete")]
    assert (await client.get_step(created.task_uuid, steps[0].step_uuid)).results == steps[0].results
    inputs = await client.get_step_inputs(created.task_uuid, steps[1].step_uuid)
    assert (inputs.evaluated, inputs.inputs, inputs.problems) == (False, {"amount": 11}, {})
    (audit,) = await client.get_step_audit_history(created.task_uuid, steps[1].step_uuid)
    assert (audit.step_name, audit.success) == ("charge", True)
    assert (await client.health_check()).healthy
    assert (await client.is_live(), await client.is_ready()) == (True, True)


async def test_graph_of_a_template_comes_in_the_form_that_was_asked_for(client: HttpClient) -> None:
    one = ("shop", "orders", "1.0.0")
    assert (await client.get_template_graph(*one)).edges
    for form, beginning in (("mermaid", "flowchart"), ("dot", "digraph")):
        assert (await client.get_template_graph(*one, format=form)).startswith(beginning)


async def test_a_wait_that_is_over_before_the_task_says_so(client: HttpClient, app: tasker.App) -> None:
    (plan,) = compile_text(WAITING).plans
    await app.plans.register(plan)
    task = (await client.create_task("waiting", namespace="nobody")).task_uuid

    with pytest.raises(TimeoutError, match=task):
        await client.wait(task, timeout=0.05)
    assert (await client.cancel_task(task, reason="enough")).previous_status != "cancelled"
    assert (await client.wait(task)).status == "cancelled"
    with pytest.raises(StateMachineError, match="cancelled"):
        await client.cancel_task(task)


async def test_what_a_server_refuses_raises_as_the_app_does(client: HttpClient) -> None:
    twelve: Any = {"namespace": "shop", "context": {"amount": 12}, "idempotency_key": "twelve"}
    await client.create_task("orders", **twelve)
    with pytest.raises(InputInvalid, match="amount") as invalid:
        await client.create_task("orders", namespace="shop", context={})
    refused: list[tuple[type[TaskerError], Any]] = [
        (DuplicateTask, client.create_task("orders", **twelve)),
        (TemplateNotFound, client.create_task("nothing", namespace="shop")),
        (TaskNotFound, client.get_task(NOBODY)),
        (TaskNotFound, client.wait(NOBODY, timeout=1)),
        (TaskNotFound, anext(client.stream(NOBODY))),
        (UsageError, client.get_task("no/uuid")),
        (UsageError, client.get_task("")),
        (StepNotFound, client.explain_task((await client.list_tasks(per_page=1)).tasks[0].task_uuid, "nothing")),
        (TemplateError, client.register_templates("name: [")),
        (DeadLetterNotFound, client.get_dead_letter(NOBODY)),
        (ScheduleNotFound, client.get_schedule("shop/orders/never")),
        (UsageError, client.get_schedule("nightly")),
        (UsageError, client.pause()),
        (UsageError, client.list_tasks(per_page=501)),
    ]

    assert invalid.value.problems[0].path == "/context/amount"
    for kind, call in refused:
        with pytest.raises(kind):
            await call


async def test_every_route_has_a_method(client: HttpClient, http_server: HttpServer, monkeypatch: Any) -> None:
    asked: Counter[tuple[str, str]] = Counter()
    routes = {
        (method.upper(), path.replace("{uuid}", "{task_uuid}"))
        for path, operations in described().openapi()["paths"].items()
        for method in operations
        if path not in ("/metrics", "/v1/hooks/{name}")  # text for who scrapes it; other systems sign what they send
    }
    task = await client.create_task("orders", namespace="shop", context={"amount": -1}, wait=30)
    step = task.steps[0].step_uuid
    names = {task.task_uuid: "{task_uuid}", step: "{step_uuid}"}

    async def note(request: Any) -> None:
        asked[request.method, "/".join(names.get(part, part) for part in request.url.path.split("/"))] += 1

    client.connection._client.event_hooks = {"request": [note]}
    one = ("shop", "orders", "1.0.0")
    calls: list[Any] = [
        client.create_task("orders", namespace="shop", context={"amount": 13}),
        client.create_tasks([{"namespace": "shop", "name": "orders", "context": {"amount": 14}}]),
        client.request_task("orders", namespace="shop", context={"amount": 15}),
        client.get_task(task.task_uuid),
        client.list_tasks(),
        client.get_task_context(task.task_uuid),
        client.get_task_details(task.task_uuid),
        client.explain_task(task.task_uuid),
        client.list_task_steps(task.task_uuid),
        client.get_step(task.task_uuid, step),
        client.get_step_audit_history(task.task_uuid, step),
        client.get_step_inputs(task.task_uuid, step),
        client.resolve_step(task.task_uuid, step, reason="seen"),
        client.cancel_task(task.task_uuid),
        client.compensate_task(task.task_uuid),
        client.list_templates(),
        client.get_template(*one),
        client.get_template_graph(*one, format="text"),
        client.validate_template(*one),
        client.register_templates(ORDERS, validate_only=True),
        client.plan_templates(ORDERS),
        client.apply_templates(REFUND, token_of_refund()),
        client.create_schedule(NIGHTLY, {"cron": "0 2 * * *", "context": {"amount": 1}}),
        client.list_schedules(namespace="shop"),
        client.get_schedule(NIGHTLY),
        client.list_upcoming_fires(NIGHTLY, count=2),
        client.pause_schedule(NIGHTLY, reason="x"),
        client.trigger_schedule(NIGHTLY),
        client.backfill_schedule(NIGHTLY, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)),
        client.list_fires(NIGHTLY),
        client.resume_schedule(NIGHTLY),
        client.delete_schedule(NIGHTLY),
        client.list_workers(),
        client.list_handlers(),
        client.list_handlers_of("shop"),
        client.get_handler("shop", "shop.check"),
        client.list_queues(),
        client.list_limits(keys=3),
        client.list_pauses(),
        client.pause(namespace="shop", reason="x"),
        client.resume(namespace="shop"),
        client.performance(),
        client.template_history("shop", "orders"),
        client.bottlenecks(),
        client.scaling(ScalingSettings(min_workers=1)),
        client.health_check(),
        client.detailed_health(),
        client.is_live(),
        client.is_ready(),
        client.metrics(),
        client.list_dead_letters(),
        client.get_dead_letter(NOBODY),
        client.update_dead_letter(NOBODY, notes="x"),
        client.retry_dead_letter(NOBODY, reason="x"),
        client.dead_letter_stats(),
        client.investigation_queue(),
        client.staleness(),
        client.dead_letter_groups(),
        client.get_dead_letter_entry(NOBODY),
        client.open_dead_letter(task.task_uuid, notes="look"),
        client.list_replays(),
        client.get_replay(NOBODY),
        client.begin_replay(FailureSelection(namespace="shop"), dry_run=True),
        client.steer_replay(NOBODY, "paused"),
        client.list_tasks_briefly(tags=["a"]),
        client.list_identifiers("0199"),
        client.list_refused_messages(),
        client.list_operator_actions(actor="ada", since=datetime(2026, 1, 31, tzinfo=UTC), limit=3),
        client.get_task_report(task.task_uuid),
        client.get_task_history(task.task_uuid),
        client.get_task_progress(task.task_uuid),
        client.get_task_logs(task.task_uuid, step="check", level="info", limit=5),
        client.get_task_children(task.task_uuid),
        client.get_task_template(task.task_uuid),
        client.get_task_audit(task.task_uuid),
        client.retry_task(task.task_uuid, reason="again"),
        client.rerun_task(task.task_uuid, "check"),
        client.overview(),
        client.list_events(limit=1),
        client.send_event("shop", "paid", {"amount": 1}),
        client.list_incoming_events(namespace="shop"),
        client.list_approvals(mine=False, namespace="shop"),
        client.get_approval(NOBODY, "check"),
        client.decide_approval(NOBODY, "check", "approved", form={"a": 1}),
        client.make_approval_link(NOBODY, "check", "ann"),
        client.list_event_subscribers(),
        client.replay_events("nobody", after=0),
        client.doctor(),
    ]
    for call in calls:
        with contextlib.suppress(ApprovalNotFound, DeadLetterNotFound, StateMachineError, UsageError):
            await call
    async for _ in client.stream(task.task_uuid):
        break

    known = {"shop": "{namespace}", **dict.fromkeys(("orders", "nobody", "shop.check"), "{name}")}
    known |= {"1.0.0": "{version}", NOBODY: "{uuid}"}
    seen = {(method, "/".join(known.get(part, part) for part in path.split("/"))) for method, path in asked}
    plain = {(method, path.replace("{dlq_entry_uuid}", "{uuid}")) for method, path in routes}
    plain = {(method, path.replace("{replay_uuid}", "{uuid}")) for method, path in plain}
    plain = {(method, path.replace("/dlq/task/{task_uuid}", "/dlq/task/{uuid}")) for method, path in plain}
    plain = {
        (method, path.replace("/approvals/{task_uuid}/{step}", "/approvals/{uuid}/check")) for method, path in plain
    }
    plain = {(method, path.replace("/{template}/{name}", "/{name}/nightly")) for method, path in plain}
    assert plain - seen == set()


async def test_pages_are_read_by_their_cursors(client: HttpClient) -> None:
    await client.create_tasks([order(amount, tags=["by cursor"]) for amount in range(960, 965)])
    pages = [await client.list_tasks(per_page=2, tags=["by cursor"])]
    while cursor := pages[-1].pagination.next_cursor:
        pages.append(await client.list_tasks(per_page=2, tags=["by cursor"], cursor=cursor))

    whole = await client.list_tasks(tags=["by cursor"])
    assert [len(page.tasks) for page in pages] == [2, 2, 1]
    assert [task.task_uuid for page in pages for task in page.tasks] == [task.task_uuid for task in whole.tasks]
    with pytest.raises(UsageError, match="not one of this list"):
        await client.list_tasks(cursor="x")


async def test_who_cancels_a_task_is_recorded(app: tasker.App, client: HttpClient) -> None:
    (plan,) = compile_text(WAITING).plans
    await app.plans.register(plan)
    tasks = [await client.create_task("waiting", namespace="nobody") for _ in range(2)]
    await HttpFleet(client).tasks.cancel(tasks[0].task_uuid, reason="no", actor="ann")
    await client.cancel_task(tasks[1].task_uuid)

    histories = [await app.tasks.history(task.task_uuid) for task in tasks]
    assert [(history[-1].metadata or {})["actor"] for history in histories] == ["ann", "ada"]


async def test_pages_are_numbered_as_the_api_numbers_them(client: HttpClient) -> None:
    await client.create_tasks([order(amount, tags=["paged"]) for amount in range(940, 946)])

    async def page(number: int) -> tuple[int, int | None, bool | None, bool]:
        found = await client.list_tasks(per_page=4, page=number, tags=["paged"])
        pagination = found.pagination
        return len(found.tasks), pagination.total_count, pagination.has_previous, pagination.has_next

    assert [await page(number) for number in (0, 1, 2)] == [
        (4, 6, False, True),
        (2, 6, True, False),
        (0, 6, True, False),
    ]


@pytest.mark.parametrize("page", [{"per_page": 0}, {"page": -1}, {"per_page": 501}])
async def test_page_outside_of_the_limits_is_a_usage_error(client: HttpClient, page: Any) -> None:
    with pytest.raises(UsageError, match=next(iter(page))):
        await client.list_tasks(**page)


async def test_a_task_of_many_steps_is_read_page_by_page(client: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    task = (await client.create_task("orders", namespace="shop", context={"amount": 930})).task_uuid
    await client.wait(task, timeout=30)

    async def read() -> tuple[Any, Any, Any]:
        return await client.get_task(task), await client.get_task_report(task), await client.list_task_steps(task)

    whole = await read()
    for name in ("tasks.STEPS_PAGE", "operators.REPORT_PAGE", "steps.STEPS_PAGE"):
        monkeypatch.setattr(f"tasker.client.calls.{name}", 1)

    assert (
        await client.get_task(task),
        await client.get_task_report(task),
        await client.list_task_steps(task),
    ) == whole
    assert (await client.wait(task)).steps == whole[0].steps
    assert [*whole[1].steps] == [step.name for step in whole[0].steps] == ["check", "charge"]
    url = f"/v1/tasks/{task}"
    first = await client.connection.get(url, {"steps_limit": 1})
    assert ([step["name"] for step in first["steps"]], first["more_steps"]) == (["check"], 1)
    second = await client.connection.get(f"{url}/report", {"limit": 1, "offset": 1})
    assert (second["steps"]["charge"]["depends_on"], second["more_steps"]) == (["check"], 0)


async def test_a_long_list_of_tasks_is_read_page_by_page(client: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    await client.create_tasks([order(amount, tags=["long"]) for amount in range(920, 925)])

    async def listed(**which: int) -> list[str]:
        return [task.task_uuid for task in await client.list_tasks_briefly(tags=["long"], **which)]

    whole = await listed(limit=9)
    monkeypatch.setattr("tasker.client.calls.operators.LIST_PAGE", 2)

    assert await listed(limit=9) == whole
    assert await listed(limit=3, offset=1) == whole[1:4]
    assert len(whole) == 5
    with pytest.raises(UsageError, match="limit"):
        await client.connection.get("/v1/listings/tasks", {"limit": 1001})


async def test_a_history_is_read_page_by_page(
    client: HttpClient, app: tasker.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = (await app.submit("shop/orders", {"amount": 77})).task_uuid
    await app.wait(task)
    whole = await client.get_task_history(task)
    monkeypatch.setattr("tasker.client.calls.operators.HISTORY_PAGE", 2)

    assert await client.get_task_history(task) == whole
    assert len(whole) == len(await app.tasks.history(task)) > 2


async def test_the_stream_of_a_task_ends_with_it(client: HttpClient) -> None:
    task = (await client.create_task("orders", namespace="shop", context={"amount": 15})).task_uuid

    events = [event async for event in client.stream(task)]
    again = [event async for event in client.stream(task, after=events[-2].place)]

    assert events[-1].to_state == "complete"
    assert {event.step for event in events[:-1]} == {None, "check", "charge"}
    assert [(event.kind, event.to_state) for event in again] == [("end", "complete")]


async def test_the_waiting_twin_does_the_same(http_server: HttpServer) -> None:
    def use() -> tuple[str, list[str | None]]:
        with SyncHttpClient(http_server.address) as client:
            task = client.create_task("orders", namespace="shop", context={"amount": 16})
            events = [event.kind for event in client.stream(task.task_uuid)]
            status = client.wait(task.task_uuid).status
            client.close()  # and once more at the end of the block
        return status, [events[-1]]

    assert await asyncio.to_thread(use) == ("complete", ["end"])
    asynchronous = {name for name in dir(HttpClient) if not name.startswith("_")} - set(dir(SyncHttpClient))
    assert asynchronous == {"submit"}
    assert TaskCalls.submit
