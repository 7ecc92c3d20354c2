"""Queues, workers, pauses, events and settings on pages."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count

import pytest

import tasker
from tasker.server.application import DescribedRoute
from tasker.services.configuration.effective import effective_settings
from tasker.services.configuration.plugins import PluginReport
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission
from tasker.settings.check import check
from tasker.settings.nested import nested
from tasker.template import compile_text
from tests.integration.web.conftest import Site, offered

EVIL = "<script>alert(1)</script>"
number = count(500_000)


async def waiting(app: tasker.App) -> str:
    return (
        await app.submissions.submit(TemplateSubmission("nobody", "waiting", None, Submission({"n": next(number)})))
    ).task_uuid


async def test_queues_processes_and_the_broker_are_told(app: tasker.App, site: Site) -> None:
    await waiting(app)
    text = await site.text("fleet")
    assert 'href="/ui/tasks?namespace=nobody"' in text
    assert "pgmq" in text
    (worker, *_) = [each for each in await app.workers.list() if each.kind == "worker"]
    assert f'href="/ui/fleet/{worker.worker}"' in text
    shown = await site.text(f"fleet/{worker.worker}")
    assert "shop.check" in shown
    assert "Running steps" in shown


@pytest.mark.parametrize("worker", ["nonsense", "00000000-0000-7000-8000-000000000000"])
async def test_a_process_that_is_none_is_told(site: Site, worker: str) -> None:
    assert (await site.get(f"fleet/{worker}")).status_code == 400


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("namespace", "nobody"),
        ("template", "shop/named"),
        ("step", "shop/orders/charge"),
        ("queue", "orchestration_step_results"),
    ],
)
async def test_whatever_can_be_paused_is_paused_and_resumed(
    app: tasker.App, closed: Site, kind: str, name: str
) -> None:
    await closed.sign_in("everything")
    paused = await closed.post("fleet/pause", what=kind, name=name, reason=EVIL)
    assert f"{name} is paused" in paused.text
    assert EVIL not in paused.text
    (pause,) = (await app.pauses.list()).pauses
    assert (pause.actor, pause.reason) == ("ada", EVIL)
    assert f"tasker resume {'' if kind == 'namespace' else f'--{kind} '}{name}" in paused.text
    resumed = await closed.post("fleet/resume", what=kind, name=name)
    assert f"{name} is resumed" in resumed.text
    assert (await app.pauses.list()).pauses == []


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"what": "moon", "name": "x", "reason": "y"}, "cannot be paused"),
        ({"what": "namespace", "name": "", "reason": "y"}, "what to pause is missing"),
        ({"what": "namespace", "name": "shop"}, "a reason is missing"),
        ({"what": "template", "name": "shop", "reason": "y"}, "does not name a template"),
        ({"what": "namespace", "name": "unknown", "reason": "y"}, "no namespace of that name"),
        ({"what": "task", "name": "x", "reason": "y"}, "is not a task"),
    ],
)
async def test_a_pause_of_nothing_is_told_on_the_page(site: Site, fields: dict[str, str], told: str) -> None:
    answer = await site.post("fleet/pause", **fields)
    assert answer.status_code == 400
    assert told in answer.text.replace("&#39;", "'")
    assert "Queues and workers" in answer.text


async def test_a_caller_pauses_only_in_their_namespaces(app: tasker.App, closed: Site) -> None:
    await closed.sign_in("confined")
    for kind, name in (
        ("namespace", "nobody"),
        ("template", "nobody/waiting"),
        ("queue", "orchestration_step_results"),
    ):
        answer = await closed.post("fleet/pause", what=kind, name=name, reason="x")
        assert answer.status_code == 403, name
    assert (await app.pauses.list()).pauses == []
    assert (await closed.get("fleet")).status_code == 403


async def test_events_and_their_subscribers_are_listed(app: tasker.App, site: Site) -> None:
    text = await site.text("events")
    assert "No events." in text
    assert (await site.get("events", task="x")).status_code == 400
    assert (await site.get("events", after="-1")).status_code == 400
    assert (await site.get("events", withheld="yes")).status_code == 200
    answer = await site.post("events/subscribers/nobody/replay", after="0")
    assert "no subscriber" in answer.text
    assert (await site.post("events/subscribers/nobody/replay")).status_code == 400
    assert (await site.post("events/subscribers/nobody/replay", after="x")).status_code == 400


PUBLISHING = """
name: till
namespace: elsewhere
version: 1.0.0
steps:
  - name: pay
    handler: shop.check
    publishes_events:
      - {name: elsewhere.paid}
      - {name: elsewhere.checked, schema: {type: object, required: [nothing_like_that]}}
"""


async def test_confined_caller_sees_no_events_of_other_namespaces(app: tasker.App, closed: Site) -> None:
    await app.run(compile_text(PUBLISHING).plans[0], {"amount": 3})
    addresses = [("paid", {}), ("paid", {"after": "0"}), ("checked", {"withheld": "yes"})]
    for key, shown in (("everything", True), ("confined", False)):
        await closed.sign_in(key)
        for event, words in addresses:
            assert (f"elsewhere.{event}" in await closed.text("events", **words)) == shown, words


async def test_settings_say_where_each_value_is_from_and_no_secret(app: tasker.App) -> None:
    values = {"common.database.url": "postgresql://u:very-secret@db/x", "orchestration.web.root_path": "/tasker"}
    settings = check(nested(values)).settings
    assert settings is not None

    def origin(path: str) -> str:
        return "tasker.toml:3" if path in values else "default"

    plugin = PluginReport("logs", "on", "tasker-engine", "1", "here", ["tasker_write_committed"], problem=EVIL)
    shown = DescribedRoute(effective_settings(settings, origin), [plugin])
    async with offered(app, shown=lambda: shown) as site:
        text = await site.text("settings")
        assert "very-secret" not in text
        assert "tasker.toml:3" in text
        assert "orchestration.web.max_body_bytes" not in text
        assert "tasker_write_committed" in text
        everything = await site.text("settings", all="yes")
        assert "orchestration.web.max_body_bytes" in everything
        assert "very-secret" not in everything
        found = await site.text("settings", q="size of a request body")
        assert "orchestration.web.max_body_bytes" in found
        assert "orchestration.web.root_path" not in found


async def test_what_is_wrong_and_who_did_what_are_told(app: tasker.App, closed: Site) -> None:
    await closed.sign_in("everything")
    assert "tasker doctor" in await closed.text("settings/doctor")
    task = await waiting(app)
    await closed.post(f"tasks/{task}/cancel", reason="no need")
    text = await closed.text("settings/actions", actor="ada")
    assert "POST /ui/tasks/{uuid}/cancel" in text
    assert f"/ui/tasks/{task}/cancel" in text
    assert "No operator actions" in await closed.text("settings/actions", actor=EVIL)
    later = datetime(2100, 1, 1, tzinfo=UTC).isoformat()
    assert "No operator actions" in await closed.text("settings/actions", since=later)
    assert (await closed.get("settings/actions", since="x")).status_code == 400


async def test_who_may_not_see_the_first_page_comes_to_one_that_they_may(closed: Site) -> None:
    await closed.sign_in("only-tasks:list")
    assert (await closed.get()).headers["location"] == "/ui/tasks"
    await closed.sign_in("nothing")
    assert (await closed.get()).status_code == 403
    await closed.sign_in("confined")
    assert (await closed.get()).headers["location"] == "/ui/tasks"
