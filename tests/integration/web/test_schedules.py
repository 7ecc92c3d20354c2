"""Pages of schedules: what they show, and each of their actions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import pytest_asyncio

import tasker
from tests.integration.web.conftest import Site

NAME = "shop/orders/nightly"
KEYS = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "context": {"amount": 1}}
HERE = f"schedules/{NAME}"


@pytest_asyncio.fixture(loop_scope="module")
async def schedule(app: tasker.App) -> AsyncIterator[str]:
    await app.schedules.create(NAME, KEYS)
    yield NAME
    await app.schedules.delete(NAME)


async def test_schedules_are_listed_with_their_next_fire(app: tasker.App, site: Site, schedule: str) -> None:
    text = await site.text("schedules")
    assert f'href="/ui/schedules/{NAME}"' in text
    assert "30 2 * * *" in text
    assert "Europe/Berlin" in text
    assert "No schedules match" in await site.text("schedules", namespace="nobody")


async def test_pages_of_the_list_follow_each_other(app: tasker.App, site: Site) -> None:
    names = [f"shop/orders/s{number:02}" for number in range(51)]
    for name in names:
        await app.schedules.create(name, KEYS)
    text = await site.text("schedules")
    assert names[49] in text
    assert names[50] not in text
    assert names[50] in await site.text("schedules", after=names[49])
    for name in names:
        await app.schedules.delete(name)


async def test_a_schedule_shows_its_rules_its_next_fires_and_its_history(
    app: tasker.App, site: Site, schedule: str
) -> None:
    task = await app.schedules.trigger(NAME, actor="ada", reason="<b>now</b>")
    text = await site.text(HERE)
    assert "Next fire times" in text
    assert text.count("data-local") >= 8
    assert f'href="/ui/tasks/{task}"' in text
    assert "by ada: <b>now</b>" in text  # unescaped by the test's browser; escaped in the page
    assert "<b>now</b>" not in (await site.get(HERE)).text
    assert '{"amount": 1}' in text


async def test_a_schedule_is_paused_resumed_and_triggered(app: tasker.App, closed: Site, schedule: str) -> None:
    await closed.sign_in("everything")
    assert "Paused: open tasks continue" in (await closed.post(f"{HERE}/pause", reason="enough")).text
    assert (await app.schedules.get(NAME)).state == "paused"
    assert "paused by ada" in (await closed.text(HERE)).lower()
    assert "Resumed." in (await closed.post(f"{HERE}/resume")).text
    assert "Submitted the task" in (await closed.post(f"{HERE}/trigger", reason="now")).text
    (fire,) = await app.schedules.fires(NAME)
    assert fire.kind == "trigger"


async def test_an_action_without_a_reason_shows_the_schedule_again(closed: Site, schedule: str) -> None:
    await closed.sign_in("everything")
    answer = await closed.post(f"{HERE}/pause")
    assert answer.status_code == 400
    assert "a reason is missing" in answer.text
    assert "Next fire times" in answer.text


async def test_a_backfill_is_previewed_and_then_started(app: tasker.App, closed: Site, schedule: str) -> None:
    await closed.sign_in("everything")
    await app.schedules.pause(NAME)
    span = {"from": "2026-01-01", "to": "2026-01-04"}
    preview = await closed.text(HERE, **span)
    assert "3 tasks" in preview
    assert "backfill shop/orders/nightly --from 2026-01-01T00:00:00+00:00 --to 2026-01-04T00:00:00+00:00" in preview
    assert await app.schedules.fires(NAME) == []
    assert "3 tasks will be submitted." in (await closed.post(f"{HERE}/backfill", **span, reason="lost")).text
    begin, end = (datetime.fromisoformat(day).replace(tzinfo=UTC) for day in span.values())
    assert (await app.schedules.plan_backfill(NAME, begin, end)).fires == []


@pytest.mark.parametrize("span", [{"from": "x", "to": "y"}, {"from": "2026-01-04", "to": "2026-01-01"}])
async def test_a_span_with_a_mistake_is_told(site: Site, schedule: str, span: dict[str, str]) -> None:
    answer = await site.get(HERE, **span)
    assert answer.status_code == 400
    assert "Next fire times" in answer.text


async def test_an_unknown_schedule_is_not_found(site: Site) -> None:
    assert (await site.get("schedules/shop/orders/none")).status_code == 404


async def test_actions_are_for_those_who_may(closed: Site, schedule: str) -> None:
    await closed.sign_in("only-schedules:read")
    assert "Backfill" not in await closed.text(HERE)
    assert (await closed.post(f"{HERE}/pause", reason="x")).status_code == 403


async def test_schedules_of_other_namespaces_are_hidden(app: tasker.App, closed: Site) -> None:
    await app.schedules.create("nobody/waiting/often", {"every": "1h"})
    await closed.sign_in("confined")
    assert "nobody/waiting" not in await closed.text("schedules")
    assert (await closed.get("schedules/nobody/waiting/often")).status_code in (403, 404)
    await app.schedules.delete("nobody/waiting/often")
