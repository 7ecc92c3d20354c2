"""No read shows a sensitive value to a viewer who may not read it: redaction is inside the services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import aclosing
from typing import Any

import httpx
import pytest
import pytest_asyncio

import tasker
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.operations.approvals import APPROVAL
from tasker.operations.schedules import SCHEDULE
from tasker.server.web.rendering import ROOT
from tasker.services.operators.pauses import PauseTarget
from tasker.services.submission.submit import Submission
from tasker.services.tasks.history import TaskEvent
from tasker.services.viewer import STRANGER, SeenServices, Viewed
from tasker.step_handler import step_handler
from tasker.template import compile_text
from tests.integration.api.program import CARDS, registered
from tests.integration.api.test_access import by, guarded
from tests.integration.api.test_answers_as_described import DOCUMENT, NEEDED, half_approved, of_path
from tests.support.registered import submit_registered
from tests.unit.operations.test_declarations import OPERATIONS

__all__ = ("guarded",)
CANARY, CODE, PIN = "4111-canary-4111", "code-canary-77", 87654321
"""Sensitive: a text of the input, one of a filled form, and a number of a result, which `shop.token` makes."""
HELD = """
name: held_cards
namespace: held
version: 1.0.0
identity_strategy: always_unique
input_schema: {type: object, properties: {number: {type: string, x-sensitive: true}}}
steps: [{name: never, handler: held.never}]
"""
WATCHED = (
    HELD.replace("held_cards", "watched_cards")
    .replace("namespace: held", "namespace: shop")
    .replace("held.never", "shop.watched")
)
READS = [each for each in OPERATIONS if each.endpoint.method == "GET"]
UNREDACTED = ("/v1/refused-messages", "/v1/pauses", "/v1/listings/tasks")
"""Behind the permission itself; and lists of pauses, which have the words of operators as they wrote them."""
PAGES = (
    "tasks",
    "tasks/{held}",
    "tasks/{held}?step=never",
    "tasks/{held}?view=history",
    "tasks/{task_uuid}",
    "tasks/{task_uuid}?view=timeline",
    "tasks/{task_uuid}?view=history",
    "tasks/{task_uuid}?view=logs",
    "tasks/{task_uuid}?step=charge",
    "tasks/{task_uuid}?step=token",
    "tasks/{task_uuid}/report",
    "dead-letters",
    "dead-letters/entries/{dlq_entry_uuid}",
    "schedules",
    "overview",
    "fleet",
    "events",
    "approvals",
    "approvals/{asked}/approve",
    "tasks/{asked}",
    "tasks/{asked}?step=approve",
    "tasks/{asked}?view=history",
    "tasks/{asked}/report",
)


@pytest.fixture(scope="module")
def ended() -> Iterator[asyncio.Event]:
    """Until it is set the watched step runs."""
    event = asyncio.Event()
    yield event
    event.set()


@pytest.fixture(scope="module")
def registry(ended: asyncio.Event) -> HandlerRegistry:
    @step_handler("shop.watched")
    async def watched(context: Any) -> dict[str, Any]:
        context.report_progress(done=1, message=f"charging {context.input_data['number']}")
        await ended.wait()
        return {}

    found = registered()
    found.register("shop.watched", watched)
    return found


@pytest_asyncio.fixture(loop_scope="module")
async def named(app: tasker.App) -> dict[str, str]:
    """A failed task with a sensitive input, its dead letter, a schedule with such an input, and half an approval."""
    for template in (CARDS, HELD):
        (plan,) = compile_text(template).plans
        await app.plans.register(plan)
    held = (await submit_registered(app, plan, Submission({"number": CANARY}))).task_uuid
    await app.pauses.pause(PauseTarget.of(task=held), actor="ada", reason=f"the card {CANARY} was stolen")
    card = {"card": {"number": CANARY, "brand": "visa"}}
    task = (await app.submit("shop/cards", card)).task_uuid
    await app.finished(task, timeout=20)
    entry = await app.dead_letters.of_task(task)
    await app.schedules.create("shop/cards/viewed", {"cron": "0 2 * * *", "context": card}, actor="ada", overwrite=True)
    step = next(step for step in await app.views.steps(task) if step.name == "charge")
    names = {"namespace": "shop", "template": "cards", "name": "cards", "version": "1.0.0", "step": "approve"}
    return {
        **names,
        "uuid": task,
        "task_uuid": task,
        "step_uuid": step.step_uuid,
        "held": held,
        "asked": await half_approved(app, CANARY, CODE),
        "dlq_entry_uuid": entry.dlq_entry_uuid,
    }


def revealed(text: str) -> Collection[str]:
    return [secret for secret in (CANARY, CODE) if secret in text]


async def test_no_service_reveals_a_value_without_the_permission(app: tasker.App, named: dict[str, str]) -> None:
    seen, found = SeenServices(app, STRANGER), []
    for operation in READS:
        service, method = operation.endpoint.service.split(".")
        needed = [
            each
            for each in operation.parameters
            if each.published in named and "{" + each.published in operation.endpoint.path
        ]
        arguments = {each.name: of_path(operation.endpoint.path, named)[each.published] for each in needed}
        if operation.name in SKIPPED or operation.endpoint.path in UNREDACTED[1:]:
            continue
        if operation.name == "list_identifiers":
            arguments["prefix"] = "0"
        if operation.name == "list_task_summaries":
            arguments = {}
        if operation.endpoint.path.startswith(SCHEDULE):
            arguments = {"address": "shop/cards/viewed"}
        answer = await getattr(getattr(seen, service), method)(**arguments)
        found += [(operation.name, secret) for secret in revealed(repr(answer))]

    assert found == []


async def first_message(events: AsyncIterator[TaskEvent | None]) -> str:
    async for event in events:
        if event and event.reported:
            return str(event.reported["message"])
    raise AssertionError("the task has ended without a report")


async def test_a_stream_of_events_reveals_nothing_that_a_handler_reports(app: tasker.App, ended: asyncio.Event) -> None:
    """It has no viewer: transitions have no values, and reports are redacted before they are stored."""
    (plan,) = compile_text(WATCHED).plans
    await app.plans.register(plan)
    task = (await app.submit(await app.plan(plan), {"number": CANARY})).task_uuid
    stream = await app.events.follow(task)
    assert stream is not None
    async with asyncio.timeout(60), aclosing(stream) as events:
        message = await first_message(events)
    ended.set()

    assert message == "charging ***REDACTED***"


SKIPPED = {
    "list_tasks",
    "get_replay",
    "get_handler",
    "template_history",
    "list_handlers_of",
    "doctor",
    "list_templates",
}
"""Their methods take other arguments; they are read over HTTP below."""


async def test_why_a_task_waits_reveals_nothing(
    app: tasker.App, guarded: httpx.AsyncClient, named: dict[str, str]
) -> None:
    url = f"/v1/tasks/{named['held']}/explain"
    shown = [(await guarded.get(url, headers=by(key))).json() for key in ("everything", "but data:read_sensitive")]
    seen = await SeenServices(app, STRANGER).tasks.explain(named["held"])

    assert [CANARY in answer["reasons"][0]["sentence"] for answer in shown] == [True, False]
    assert "was stolen" in shown[1]["reasons"][0]["sentence"]
    assert revealed(repr(seen) + seen.reasons[0].sentence()) == []


async def test_no_route_reveals_a_value_to_a_caller_without_the_permission(
    guarded: httpx.AsyncClient, named: dict[str, str]
) -> None:
    found: list[tuple[str, str]] = []
    shown: list[tuple[str, str]] = []
    for path, operations in DOCUMENT["paths"].items():
        if "get" not in operations or path in UNREDACTED or "{replay_uuid}" in path:
            continue
        parts = {**of_path(path, named), **({"name": "viewed"} if "schedules" in path else {})}
        if "text/event-stream" in operations["get"]["responses"]["200"]["content"]:
            continue
        for key, into in (("but data:read_sensitive", found), ("everything", shown)):
            answer = await guarded.get(path.format(**parts), headers=by(key), params=NEEDED.get(path))
            into += [(path, secret) for secret in revealed(answer.text)]

    assert found == []
    assert {path for path, _ in shown} >= {"/v1/tasks/{uuid}", "/v1/tasks/{uuid}/report", "/v1/tasks/{uuid}/context"}
    assert {secret for path, secret in shown if path == APPROVAL} == {CANARY, CODE}


async def test_no_page_reveals_a_value_to_a_caller_without_the_permission(
    guarded: httpx.AsyncClient, named: dict[str, str]
) -> None:
    found = []
    for path in PAGES:
        answer = await guarded.get(f"{ROOT}/{path.format(**named)}", headers=by("but data:read_sensitive"))
        assert answer.status_code < 500, path
        found += [(path, secret) for secret in revealed(answer.text)]

    assert found == []


def test_every_service_whose_reads_have_values_of_tasks_has_a_viewer(app: tasker.App) -> None:
    for name in ("tasks", "views", "task_pages", "dead_letters", "limits", "approvals", "sensitive_values"):
        assert isinstance(getattr(app, name), Viewed), name
