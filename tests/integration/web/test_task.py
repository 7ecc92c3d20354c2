"""The page of a task, and what a person does there, followed to its effect in the database."""

from __future__ import annotations

import asyncio
import re
from html import unescape
from typing import Any

import pytest
from markupsafe import escape

import tasker
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.operators.pauses import PauseTarget
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission
from tasker.step_handler import step_handler
from tasker.template import compile_text
from tests.integration.web.conftest import Site, offered

EVIL = "<script>alert(1)</script>"
LINGERS = """
name: lingers
namespace: shop
version: 1.0.0
identity_strategy: always_unique
steps: [{name: linger, handler: shop.linger}, {name: charge, dependencies: [linger], handler: shop.charge}]
"""
READS = {"X-API-Key": "only-tasks:read"}
VIEWS = ("graph", "timeline", "history", "logs", "data")
number = iter(range(1000, 100_000))


async def failed(app: tasker.App) -> str:
    submitted = await app.submit("shop/orders", {"amount": -next(number)})
    await app.wait(submitted.task_uuid)
    return submitted.task_uuid


async def done(app: tasker.App) -> str:
    submitted = await app.submit("shop/orders", {"amount": next(number), "note": EVIL}, tags=[EVIL])
    await app.wait(submitted.task_uuid)
    return submitted.task_uuid


def actions(text: str) -> set[str]:
    """What a page offers to do."""
    return set(re.findall(r"<summary>(.*?)</summary>", text))


async def waiting(app: tasker.App) -> str:
    order = TemplateSubmission("nobody", "waiting", None, Submission({"n": next(number)}))
    return (await app.submissions.submit(order)).task_uuid


async def test_steps_of_a_large_task_are_shown_page_by_page(
    app: tasker.App, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await done(app)
    report = await app.tasks.report(task)
    monkeypatch.setattr("tasker.server.web.pages.task.STEPS_PER_PAGE", 1)
    monkeypatch.setattr("tasker.server.web.pages.task.LARGEST_DRAWN_GRAPH", 1)
    first, *more = report.steps
    pages = [(await site.get(f"tasks/{task}", first=str(number))).text for number in range(len(report.steps))]

    for name, text in zip(report.steps, pages, strict=True):
        assert re.findall(r"data-row data-step>(.*?)</a>", text) == [name]
        assert "too large to be drawn" in text
    assert ("Earlier steps" in pages[0], "Later steps" in pages[0]) == (False, bool(more)), first
    assert ("Earlier steps" in pages[-1], "Later steps" in pages[-1]) == (bool(more), False)


async def test_a_timeline_of_a_large_task_is_shown_page_by_page(
    app: tasker.App, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await done(app)
    names = [*(await app.tasks.report(task)).steps]
    monkeypatch.setattr("tasker.server.web.pages.task.STEPS_PER_PAGE", 1)

    pages = [(await site.get(f"tasks/{task}", view="timeline", first=str(n))).text for n in range(len(names))]

    assert [re.findall(r"data-row data-step>(.*?)</a>", text) for text in pages] == [[name] for name in names]
    assert f"1 to 1 of {len(names)}" in pages[0]
    assert f"{len(names)} to {len(names)} of {len(names)}" in pages[-1]
    assert "view=timeline" in pages[0].partition("Later steps")[0].rpartition("<a")[2]


async def test_raw_json_of_a_task_is_for_who_has_signed_in(app: tasker.App, closed: Site) -> None:
    task, other = await done(app), await waiting(app)
    await closed.sign_in("only-tasks:read")
    link = re.search(r'href="([^"]+)">raw JSON', await closed.text(f"tasks/{task}", view="data"))
    assert link is not None
    answer = await closed.client.get(link[1])
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == (await closed.client.get(f"/v1/tasks/{task}/report", headers=READS)).json()
    assert answer.json()["task_uuid"] == task

    await closed.sign_in("confined")
    assert (await closed.client.get(link[1])).status_code == 200
    assert (await closed.client.get(link[1].replace(task, other))).status_code == 404
    await closed.sign_in("but-tasks:read")
    assert (await closed.client.get(link[1])).status_code == 403
    await closed.post("sign-out")
    assert (await closed.client.get(link[1])).status_code == 303


async def test_priority_below_zero_is_shown_with_its_sign(app: tasker.App, site: Site) -> None:
    submitted = await app.submit("shop/orders", {"amount": next(number)}, priority=-5)
    assert "<dt>Priority</dt><dd>-5</dd>" in await site.text(f"tasks/{submitted.task_uuid}")


@pytest.mark.parametrize("action", ["complete-step", "rerun"])
async def test_key_given_twice_in_typed_json_is_named(app: tasker.App, site: Site, action: str) -> None:
    task, text = await done(app), '{"a": [{"rows": 1, "rows": 2}]}'
    answer = await site.post(f"tasks/{task}/{action}", step="check", reason="x", result=text, context=text)
    assert answer.status_code == 400
    assert "/a/0/rows: is given twice in one object" in answer.text
    assert (await app.tasks.report(task)).status == "complete"


@pytest.mark.parametrize("view", VIEWS)
async def test_every_view_shows_the_task_and_its_words_as_text(app: tasker.App, site: Site, view: str) -> None:
    task = await done(app)
    answer = await site.get(f"tasks/{task}", view=view, step="check")
    assert answer.status_code == 200
    assert EVIL not in answer.text
    assert "&lt;script&gt;" in answer.text
    assert 'id="drawer"' in answer.text
    assert "shop.check" in answer.text


async def test_the_graph_names_every_step_with_its_state(app: tasker.App, site: Site) -> None:
    task = await failed(app)
    text = await site.text(f"tasks/{task}")
    titles = re.findall(r"<title>(.*?)</title>", text)
    assert "check: ✖ failed · 1/3" in titles
    assert "charge: · pending" in titles
    assert "less than nothing" in text


async def test_the_drawer_has_the_failure_with_its_traceback(app: tasker.App, site: Site) -> None:
    text = await site.text(f"tasks/{await failed(app)}", step="check")
    assert "PermanentError: less than nothing" in text
    assert 'raise PermanentError("less than nothing"' in text
    assert "tasker task step reset" in text
    assert "this task has no step nix" in (await site.text(f"tasks/{await failed(app)}", step="nix")).lower()


async def test_a_step_can_be_asked_for_without_the_rest_of_the_page(app: tasker.App, site: Site) -> None:
    task = await failed(app)
    alone = {"HX-Target": "beside"}
    whole = await site.get(f"tasks/{task}", step="check", view="history")
    part = await site.client.get(f"/ui/tasks/{task}?step=check&view=history", headers=alone)
    assert part.text.strip().startswith("<aside")
    assert part.text.strip() in whole.text
    assert (await site.client.get(f"/ui/tasks/{task}", headers=alone)).text.strip() == ""
    assert "has no step nix" in (await site.client.get(f"/ui/tasks/{task}?step=nix", headers=alone)).text


async def test_why_a_step_does_not_move_stands_on_the_page(app: tasker.App, site: Site) -> None:
    text = await site.text(f"tasks/{await waiting(app)}")
    assert "Why it has not finished" in text
    assert "no live worker" in text or "nobody" in text


async def test_failed_steps_run_again_with_a_reason_and_an_actor(app: tasker.App, closed: Site) -> None:
    task = await failed(app)
    await closed.sign_in("everything")
    before = len((await app.tasks.report(task)).steps["check"].failures)

    answer = await closed.post(f"tasks/{task}/retry", reason="mended the shop")
    await app.wait(task)

    assert "1 step will run again." in answer.text
    assert len((await app.tasks.report(task)).steps["check"].failures) == before + 1
    notes = [each.metadata or {} for each in await app.tasks.history(task)]
    assert {"actor": "ada", "reason": "mended the shop"} in [
        {key: note[key] for key in ("actor", "reason")} for note in notes if "actor" in note
    ]
    (action, *_) = await app.operator_log.list(actor="ada", limit=1)
    assert (action.endpoint, action.status) == ("POST /ui/tasks/{uuid}/retry", 303)


async def test_a_single_step_is_reset_resolved_or_completed(app: tasker.App, site: Site) -> None:
    task = await failed(app)
    answer = await site.post(f"tasks/{task}/complete-step", step="check", reason="by hand", result='{"amount": 5}')
    assert "with the result that you gave" in answer.text
    await app.wait(task)
    report = await app.tasks.report(task)
    assert (report.status, report.steps["check"].result) == ("complete", {"amount": 5})

    second = await failed(app)
    assert "taken as done" in (await site.post(f"tasks/{second}/resolve-step", step="check", reason="fine")).text
    await app.wait(second)
    assert (await app.tasks.report(second)).steps["check"].state == "resolved_manually"

    third = await failed(app)
    assert "check will run again." in (await site.post(f"tasks/{third}/reset-step", step="check", reason="again")).text
    await app.wait(third)
    assert len((await app.tasks.report(third)).steps["check"].failures) == 2


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ("{", "the result is not JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        ("[1]", "the result is a list"),
        ("3", "the result is a single value"),
        ("[" * 100_000, "the result"),
    ],
)
async def test_a_result_that_is_none_is_told_and_stays_in_its_field(
    app: tasker.App, site: Site, result: str, told: str
) -> None:
    task = await failed(app)
    fields: dict[str, Any] = {"step": "check", "reason": "by hand", "result": result}
    answer = await site.post(f"tasks/{task}/complete-step", **fields)
    assert answer.status_code == 400
    assert told in answer.text
    assert ("expected an object" in answer.text) == told.startswith("the result is a ")
    assert result[:50] in answer.text
    assert (await app.tasks.report(task)).steps["check"].state == "error"


async def test_an_action_that_is_refused_is_open_again_with_everything_that_was_typed(
    app: tasker.App, site: Site
) -> None:
    task = await failed(app)
    fields = {"step": "check", "reason": f'by "hand" {EVIL}', "result": "[1]"}
    answer = await site.post(f"tasks/{task}/complete-step", **fields)
    opened = re.findall(r"<details class=\"action\" open>(.*?)</details>", answer.text, re.S)
    assert len(opened) == 1
    assert f'value="{escape(fields["reason"])}"' in opened[0]
    assert ">[1]</textarea>" in opened[0]
    assert answer.text.count(str(escape(fields["reason"]))) == 1, "no other action has its reason"
    assert f'data-address="/ui/tasks/{task}?view=graph&amp;step=check"' in answer.text
    assert 'class="action" open' not in await site.text(f"tasks/{task}")


async def test_without_a_reason_nothing_is_done(app: tasker.App, site: Site) -> None:
    task = await failed(app)
    answer = await site.post(f"tasks/{task}/retry")
    assert (answer.status_code, "a reason is missing" in answer.text) == (400, True)
    assert (await app.tasks.report(task)).steps["check"].state == "error"


async def test_what_the_state_does_not_allow_is_told_on_the_page(app: tasker.App, site: Site) -> None:
    task = await done(app)
    answer = await site.post(f"tasks/{task}/reset-step", step="check", reason="again")
    assert answer.status_code == 400
    assert "is complete: reset is not possible" in answer.text
    assert (await site.post(f"tasks/{task}/cancel", reason="late")).status_code == 400


async def test_a_task_runs_again_from_a_step_with_another_input(app: tasker.App, site: Site) -> None:
    task = await failed(app)
    amount = next(number)
    context = f'{{"amount": {amount}}}'
    answer = await site.post(f"tasks/{task}/rerun", step="check", reason="right amount", context=context)
    again = answer.url.path.rpartition("/")[2]
    assert again != task
    await app.wait(again)
    report = await app.tasks.report(again)
    assert (report.status, report.context) == ("complete", {"amount": amount})

    wrong = await site.post(f"tasks/{task}/rerun", step="check", reason="x", context='{"amount": "much"}')
    assert wrong.status_code == 422
    assert "/amount" in wrong.text
    assert "much" in wrong.text


async def test_a_task_is_paused_resumed_and_cancelled(app: tasker.App, site: Site) -> None:
    task = await waiting(app)
    assert "Paused: running steps continue" in (await site.post(f"tasks/{task}/pause", reason="to see")).text
    assert [pause.task for pause in (await app.pauses.list()).pauses] == [task]
    assert "It was paused already." in (await site.post(f"tasks/{task}/pause", reason="twice")).text
    assert "Resumed" in (await site.post(f"tasks/{task}/resume")).text
    assert (await app.pauses.list()).pauses == []
    assert "The task is cancelled." in (await site.post(f"tasks/{task}/cancel", reason="no need")).text
    report = await app.tasks.report(task)
    assert (report.status, report.cancel_reason) == ("cancelled", "no need")


async def test_pause_of_a_task_is_not_shown_without_permission_to_read_pauses(app: tasker.App, closed: Site) -> None:
    task = await waiting(app)
    await app.pauses.pause(PauseTarget.of(task=task), actor="ada", reason="stock is counted")
    await closed.sign_in("everything")
    assert "stock is counted" in await closed.text(f"tasks/{task}", step="never")

    await closed.sign_in("but-system:pauses_read")
    text = await closed.text(f"tasks/{task}", step="never")

    assert "stock is counted" not in text
    assert "by ada" not in text
    assert "paused by an operator" in text
    assert actions(text) >= {"Pause", "Resume"}
    await app.pauses.resume(PauseTarget.of(task=task), actor="ada", reason="")


async def test_a_pause_shows_while_a_step_still_runs_and_nothing_is_held(
    app: tasker.App, registry: HandlerRegistry, site: Site
) -> None:
    began, go = asyncio.Event(), asyncio.Event()

    @step_handler("shop.linger")
    async def linger() -> dict[str, Any]:
        began.set()
        await go.wait()
        return {}

    registry.register("shop.linger", linger)
    await app.plans.register(compile_text(LINGERS).plans[0])
    task = (await app.submit("shop/lingers", {})).task_uuid
    await asyncio.wait_for(began.wait(), 60)
    before = await site.text(f"tasks/{task}")
    assert (actions(before) & {"Pause", "Resume"}, "paused" in before) == ({"Pause"}, False)

    paused = unescape((await site.post(f"tasks/{task}/pause", reason="wait for Ada")).text)
    assert actions(paused) & {"Pause", "Resume"} == {"Resume"}
    assert '<span class="state paused"' in paused
    assert re.search(r"Paused since .* by \w+: wait for Ada\.", paused)

    resumed = (await site.post(f"tasks/{task}/resume")).text
    assert actions(resumed) & {"Pause", "Resume"} == {"Pause"}
    go.set()
    assert (await app.wait(task)).status == "complete"
    assert "Resume" not in actions(await site.text(f"tasks/{task}"))


async def test_who_may_only_read_sees_no_action_and_can_do_none(app: tasker.App, closed: Site) -> None:
    task = await failed(app)
    await closed.sign_in("only-tasks:read")
    text = await closed.text(f"tasks/{task}")
    assert "Retry failed" not in text
    for action in ("retry", "cancel", "rerun", "pause", "resume", "reset-step", "resolve-step", "complete-step"):
        answer = await closed.post(f"tasks/{task}/{action}", step="check", reason="x", result="{}")
        assert answer.status_code == 403, action
    assert (await app.tasks.report(task)).steps["check"].state == "error"


async def test_a_task_of_another_namespace_is_not_there(app: tasker.App, closed: Site) -> None:
    task = await waiting(app)
    await closed.sign_in("confined")
    assert (await closed.get(f"tasks/{task}")).status_code == 404
    assert (await closed.post(f"tasks/{task}/cancel", reason="x")).status_code == 404
    assert (await app.tasks.report(task)).status != "cancelled"


async def test_what_a_schema_marks_as_sensitive_is_not_shown_to_everybody(app: tasker.App, closed: Site) -> None:
    card = {"number": "4711-secret", "brand": "visa"}
    submitted = await app.submit("shop/cards", {"card": card, "shop": str(next(number))})
    await app.wait(submitted.task_uuid)
    await closed.sign_in("but-data:read_sensitive")
    for view in VIEWS:
        for step in ("token", "charge"):
            text = await closed.text(f"tasks/{submitted.task_uuid}", view=view, step=step)
            assert "4711-secret" not in text
            assert "987654321" not in text
    await closed.sign_in("everything")
    assert "4711-secret" in await closed.text(f"tasks/{submitted.task_uuid}", view="data")


async def test_an_address_of_no_task_is_a_page(site: Site) -> None:
    assert (await site.get("tasks/nonsense")).status_code == 400
    unknown = await site.get("tasks/00000000-0000-7000-8000-000000000000")
    assert unknown.status_code == 404
    assert "no task 00000000" in unknown.text
    assert (await site.get("tasks/00000000-0000-7000-8000-000000000000", view="dance")).status_code == 400


async def test_events_of_the_task_are_there_for_its_page_alone(app: tasker.App, site: Site, closed: Site) -> None:
    task = await done(app)
    async with site.client.stream("GET", f"/ui/tasks/{task}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        text = "".join([part async for part in answer.aiter_text()])
    assert "event: end" in text
    assert (await closed.get(f"tasks/{task}/events")).status_code == 303


async def test_the_page_of_a_task_is_read_by_a_proxy_below_its_path(app: tasker.App) -> None:
    task = await done(app)
    async with offered(app, root_path="/tasker") as site:
        assert f'href="/tasker/ui/tasks/{task}/report' in await site.text(f"tasks/{task}", view="data")
