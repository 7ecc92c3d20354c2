"""Finding tasks, and doing the same to many of them."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

import tasker
from tasker.server.web.pages.bulk import PORTION
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission
from tests.integration.web.conftest import Site

ROW = re.compile(r'<a href="/ui/tasks/([0-9a-f-]{36})" data-row>')
EVIL = "<img src=x onerror=alert(1)>"
number = count(100_000)


async def orders(app: tasker.App, *amounts: int, **more: object) -> list[str]:
    found = [(await app.submit("shop/orders", {"amount": amount}, **more)).task_uuid for amount in amounts]  # type: ignore[arg-type]
    for task in found:
        await app.wait(task)
    return found


async def waiting(app: tasker.App, many: int, tag: str = "held") -> list[str]:
    tasks = [
        TemplateSubmission("nobody", "waiting", None, Submission({"n": next(number)}, tags=[tag])) for _ in range(many)
    ]
    return [answer.task_uuid for answer in await app.submissions.submit_many(tasks)]  # type: ignore[union-attr]


async def found(site: Site, **words: str) -> list[str]:
    return ROW.findall(await site.text("tasks", **words))


async def test_each_filter_finds_what_it_says(app: tasker.App, site: Site) -> None:
    mark = f"mark-{next(number)}"
    good, bad = next(number), -next(number)
    (done,) = await orders(app, good, tags=[mark], initiator=mark, source_system=mark)
    (failed,) = await orders(app, bad, tags=[mark], initiator=mark)

    assert await found(site, tag=mark) == [failed, done]
    assert await found(site, tag=mark, sort="oldest") == [done, failed]
    assert await found(site, tag=mark, status="error") == [failed]
    assert await found(site, initiator=mark, source=mark) == [done]
    within = {"version": "1.0.0", "within": "15m"}
    assert await found(site, tag=mark, template="orders", namespace="shop", **within) == [
        failed,
        done,
    ]
    assert await found(site, tag=mark, namespace="nobody") == []
    assert await found(site, tag=mark, until="2020-01-01T00:00") == []
    assert await found(site, tag=mark, since="2020-01-01T00:00") == [failed, done]
    assert await found(site, field=f"amount = {good}") == [done]
    assert await found(site, field=f"amount = {good + 1}") == []
    correlation = (await app.tasks.report(done)).correlation_id or ""
    assert await found(site, correlation=correlation) == [done]
    (entry,) = await app.dead_letters.list(namespace="shop", limit=1)
    assert failed in await found(site, fingerprint=entry.fingerprints[0])
    assert await found(site, fingerprint="another") == []
    (held,) = await waiting(app, 1, f"{mark}-open")
    assert await found(site, tag=f"{mark}-open", status="open") == [held]
    assert await found(site, tag=mark, status="open") == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"status": "failed"}, "status: unknown state 'failed'"),
        ({"within": "3y"}, "'3y' is not a valid time span"),
        ({"since": "yesterday"}, "'yesterday' is not a valid time"),
        ({"correlation": "x"}, "is not a task's identifier"),
        ({"field": "amount"}, "'amount' does not name a field and its value"),
        ({"field": ".a = 1"}, "does not name a field and its value"),
        ({"cursor": "zz"}, "the cursor is not one of this list"),
    ],
)
async def test_words_that_mean_nothing_are_told_beside_the_form(site: Site, words: dict[str, str], told: str) -> None:
    answer = await site.get("tasks", **words)
    assert answer.status_code == 400
    assert told in answer.text.replace("&#39;", "'")
    assert 'class="filters"' in answer.text


async def test_a_search_leads_to_a_task_a_template_a_namespace_or_a_tag(app: tasker.App, site: Site) -> None:
    (task,) = await orders(app, next(number))
    for words, place in (
        (task, f"/ui/tasks/{task}"),
        (task[:20], f"/ui/tasks/{task}"),
        ("shop/orders", "/ui/tasks?namespace=shop&template=orders"),
        ("orders", "/ui/tasks?template=orders"),
        ("shop", "/ui/tasks?namespace=shop"),
        (EVIL, "/ui/tasks?tag=%3Cimg+src%3Dx+onerror%3Dalert%281%29%3E"),
    ):
        answer = await site.get("tasks", q=words)
        assert answer.headers["location"] == place
    report = await app.tasks.report(task)
    correlation = "c0ffee00-0000-4000-8000-000000000001"
    await orders(app, next(number), correlation_id=correlation)
    for words, place in (
        (report.steps["check"].step_uuid, f"/ui/tasks/{task}"),
        (f" {task.upper()} ", f"/ui/tasks/{task}"),
        (correlation, f"/ui/tasks?correlation={correlation}"),
        ("Shop/Orders", "/ui/tasks?namespace=shop&template=orders"),
        ("rder", "/ui/tasks?namespace=shop&template=orders"),
    ):
        assert (await site.get("tasks", q=words)).headers["location"] == place
    (failed,) = await orders(app, -next(number))
    entry = (await app.dead_letters.of_task(failed)).dlq_entry_uuid
    assert (await site.get("tasks", q=entry)).headers["location"] == f"/ui/dead-letters/entries/{entry}"
    assert "shop/cards" in await site.text("tasks", q="op/")
    many = await waiting(app, 3)
    text = await site.text("tasks", q=many[0][:8])
    assert set(many) <= set(ROW.findall(text))


async def test_pages_follow_each_other_and_nothing_is_counted(app: tasker.App, site: Site) -> None:
    tasks = await waiting(app, 60, "many")
    first = await site.text("tasks", tag="many")
    older = re.search(r'<a rel="next" href="([^"]+)"', first)
    assert older
    second = (await site.client.get(older[1].replace("&amp;", "&"))).text
    shown = [*ROW.findall(first), *ROW.findall(second)]
    assert len(shown) == len(set(shown)) == 60
    assert set(shown) == set(tasks)
    assert "First page" in second
    newer = re.search(r'<a rel="prev" href="([^"]+)"', second)
    assert newer
    again = (await site.client.get(newer[1].replace("&amp;", "&"))).text
    assert ROW.findall(again) == ROW.findall(first)
    assert 'rel="prev"' not in again
    assert 'rel="next"' in again


async def test_who_is_confined_finds_nothing_of_others(app: tasker.App, closed: Site) -> None:
    (task,) = await waiting(app, 1, "theirs")
    correlation = (await app.tasks.report(task)).correlation_id
    await closed.sign_in("confined")
    assert task not in await closed.text("tasks")
    for words in (task, task[:18], str(correlation), "theirs", "nobody/waiting", "nobody"):
        assert (await closed.get("tasks", q=words)).headers["location"].startswith("/ui/tasks?tag="), words


async def test_what_is_sensitive_is_not_found_by_who_may_not_read_it(app: tasker.App, closed: Site) -> None:
    card = {"number": "4711", "brand": "visa"}
    submitted = await app.submit("shop/cards", {"card": card, "shop": str(next(number))})
    await app.wait(submitted.task_uuid)
    await closed.sign_in("but-data:read_sensitive")
    for namespace in ("", "shop"):
        for path, more in (("tasks", {}), ("tasks/bulk", {"action": "cancel", "all": "yes"})):
            query = {"field": 'card.number = "4711"', "namespace": namespace, **more}
            answer = await closed.get(path, **query)
            assert (answer.status_code, submitted.task_uuid in answer.text) == (400, False)
            assert "values that you may not read" in answer.text
    assert (await closed.get("tasks", field="n = 1", namespace="nobody")).status_code == 200
    await closed.sign_in("everything")
    assert submitted.task_uuid in await closed.text("tasks", field='card.number = "4711"')


@pytest.mark.parametrize(
    "query",
    [
        {"namespace": "\0"},
        {"tag": "\0"},
        {"field": "a = \0"},
        {"q": "\0"},
        {"until": "0001-01-01T00:00+14:00"},
        {"since": "9999-12-31T23:59:59-14:00"},
        {"back": "zz"},
        {"q": "x" * 300},
        {"template": "x" * 5000},
    ],
)
async def test_no_address_makes_an_error_of_the_server(site: Site, query: dict[str, str]) -> None:
    assert (await site.get("tasks", **query)).status_code in (200, 303, 400)


async def test_the_same_filter_is_a_command(site: Site) -> None:
    text = await site.text("tasks", namespace="a b", status="error", within="24h", tag="x y")
    assert "tasker task list --namespace 'a b' --status error --tag x --tag y --since 24h" in text


async def test_many_tasks_are_retried_after_a_preview_a_portion_at_a_time(app: tasker.App, closed: Site) -> None:
    mark = f"bulk-{next(number)}"
    failed = await orders(app, *(-next(number) for _ in range(PORTION + 3)), tags=[mark])
    (done,) = await orders(app, next(number), tags=[mark])
    await closed.sign_in("everything")

    preview = await closed.text("tasks/bulk", action="retry", all="yes", tag=mark)
    assert f"{len(failed)} tasks" in preview
    assert "1 more of those chosen are skipped" in preview
    assert len((await app.tasks.report(failed[0])).steps["check"].failures) == 1

    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', preview))
    left = fields["left"].split()
    assert set(left) == set(failed)
    first = await closed.post("tasks/bulk", action="retry", reason="mended", left=fields["left"])
    assert f"{PORTION} of {len(failed)} tasks: {PORTION} done" in first.text
    assert "Go on with 3" in first.text
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', first.text))
    last = await closed.post("tasks/bulk", **{k: v for k, v in fields.items() if k != "form_token"})
    assert f"All {len(failed)} are processed." in last.text

    for task in failed:
        await app.wait(task)
        assert len((await app.tasks.report(task)).steps["check"].failures) == 2
    assert (await app.tasks.report(done)).status == "complete"
    actions = await app.operator_log.list(actor="ada", limit=10)
    assert [each.endpoint for each in actions].count("POST /ui/tasks/bulk") == 2


async def test_many_tasks_are_cancelled_or_run_again(app: tasker.App, site: Site) -> None:
    open_tasks = await waiting(app, 2)
    answer = await site.post("tasks/bulk", action="cancel", reason="no need", left=" ".join(open_tasks))
    assert "All 2 are processed." in answer.text
    assert {(await app.tasks.report(task)).cancel_reason for task in open_tasks} == {"no need"}
    refused = await site.post("tasks/bulk", action="cancel", reason="again", left=" ".join(open_tasks))
    assert "0 done, 2 refused" in refused.text
    assert "cannot be cancelled" in refused.text

    (failed,) = await orders(app, -next(number))
    again = await site.post("tasks/bulk", action="rerun", reason="once more", left=failed)
    (new,) = re.findall(r"again from check: ([0-9a-f-]{36})", again.text)
    await app.wait(new)
    assert (await app.tasks.report(new)).status == "error"


@pytest.mark.parametrize("action", ["retry", "rerun", "cancel"])
async def test_the_command_of_a_preview_does_the_same_to_the_same_tasks(
    app: tasker.App, site: Site, module_database_url: str, action: str
) -> None:
    suits = await (waiting(app, 2) if action == "cancel" else orders(app, -next(number), -next(number)))
    (done,) = await orders(app, next(number))
    preview = await site.text("tasks/bulk", action=action, task=[*suits, *([done] if action != "rerun" else [])])
    command = re.search(r'data-copy="(.*?)"', preview)
    assert command is not None
    bin_, environment = Path(sys.executable).parent, {**os.environ, "DATABASE_URL": module_database_url}
    environment["PATH"] = f"{bin_}{os.pathsep}{environment['PATH']}"
    ran = await asyncio.to_thread(
        subprocess.run, ["sh", "-c", command[1]], env=environment, capture_output=True, text=True, timeout=55
    )
    assert ran.returncode == 0, ran.stderr
    reports = [await app.tasks.report(task) for task in suits]
    if action == "cancel":
        assert {report.status for report in reports} == {"cancelled"}
    elif action == "retry":
        for task in suits:
            await app.wait(task)
        assert [len((await app.tasks.report(task)).steps["check"].failures) for task in suits] == [2, 2]
    else:
        assert sorted(re.findall(r"of them reused from ([0-9a-f-]{36})", ran.stdout)) == sorted(suits)
    assert (await app.tasks.report(done)).status == "complete"


@pytest.mark.parametrize(
    ("fields", "status", "told"),
    [
        ({"action": "explode", "reason": "x", "left": ""}, 400, "unknown action"),
        ({"action": "retry", "left": ""}, 400, "a reason is missing"),
        ({"action": "retry", "reason": "x", "left": "nonsense"}, 400, "is not a task"),
        ({"action": "retry", "reason": "x", "left": "", "total": "-1"}, 400, "the form is invalid"),
    ],
)
async def test_a_bulk_form_that_means_nothing_is_refused(
    site: Site, fields: dict[str, str], status: int, told: str
) -> None:
    answer = await site.post("tasks/bulk", **fields)
    assert (answer.status_code, told in answer.text.replace("&#39;", "'")) == (status, True)


async def test_many_tasks_are_done_with_the_permissions_of_each(app: tasker.App, closed: Site) -> None:
    tasks = await waiting(app, 1)
    await closed.sign_in("only-tasks:list")
    assert (await closed.get("tasks/bulk", action="cancel", task=tasks[0])).status_code == 403
    assert (await closed.post("tasks/bulk", action="cancel", reason="x", left=tasks[0])).status_code == 403
    await closed.sign_in("confined")
    assert "The action does not apply to any" in await closed.text("tasks/bulk", action="cancel", task=tasks[0])
    answer = await closed.post("tasks/bulk", action="cancel", reason="x", left=tasks[0])
    assert "0 done, 1 refused" in answer.text
    assert (await app.tasks.report(tasks[0])).status != "cancelled"
    assert await found(closed, tag="held") == []


async def test_filters_are_kept_under_a_name_for_everybody(app: tasker.App, closed: Site) -> None:
    await closed.sign_in("views")
    saved = await closed.post("tasks/views", name=EVIL, address="namespace=shop&status=error&unknown=x")
    assert saved.url.query.decode() == "namespace=shop&status=error"
    assert EVIL not in saved.text
    (view,) = await app.saved_views.list()
    assert (view.name, view.address, view.saved_by) == (EVIL, "namespace=shop&status=error", "librarian")

    listed = await closed.text("tasks", namespace="shop", status="error")
    assert 'href="/ui/tasks?namespace=shop&status=error" aria-current="page"' in listed
    assert "Remove this view" in listed
    assert "Remove this view" not in await closed.text("tasks", namespace="shop")

    await closed.post("tasks/views", name=EVIL, address="namespace=nobody")
    assert [view.address for view in await app.saved_views.list()] == ["namespace=nobody"]
    assert "is removed" in (await closed.post("tasks/views/remove", name=EVIL)).text
    assert "There is no view" in (await closed.post("tasks/views/remove", name=EVIL)).text
    assert await app.saved_views.list() == []


@pytest.mark.parametrize("key", ["only-tasks:list", "but-tasks:views_change", "confined"])
async def test_views_are_changed_only_with_the_permission_for_it(app: tasker.App, closed: Site, key: str) -> None:
    """A view is everybody's, so it is no matter of who is confined to namespaces either."""
    await app.saved_views.save("ours", "namespace=shop", actor="ada")
    await closed.sign_in(key)

    listed = await closed.text("tasks", namespace="shop")
    assert 'href="/ui/tasks?namespace=shop" aria-current="page"' in listed
    assert "this view" not in listed
    assert (await closed.post("tasks/views", name="ours", address="namespace=nobody")).status_code == 403
    assert (await closed.post("tasks/views/remove", name="ours")).status_code == 403

    assert [(view.name, view.address) for view in await app.saved_views.list()] == [("ours", "namespace=shop")]
    await app.saved_views.remove("ours")


@pytest.mark.parametrize("name", ["", "x" * 61, "a\x00b", "line\nbreak"])
async def test_a_view_without_a_proper_name_is_refused(app: tasker.App, site: Site, name: str) -> None:
    assert (await site.post("tasks/views", name=name, address="namespace=shop")).status_code == 400
    assert await app.saved_views.list() == []


async def test_there_are_fifty_views_at_most(app: tasker.App, site: Site) -> None:
    for each in range(50):
        await app.saved_views.save(f"view {each}", "tag=x", actor="ada")
    refused = await site.post("tasks/views", name="one more", address="tag=y")
    assert (refused.status_code, "there are 50 views already" in refused.text) == (400, True)
    await app.saved_views.save("view 7", "tag=z", actor="ada")
    for each in range(50):
        await app.saved_views.remove(f"view {each}")
