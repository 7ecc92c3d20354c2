"""What people do by mouse to schedules, followed to its effect."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.servers.plain_http import PLAIN
from tests.support.waiting import until
from tests.web.by_mouse import act, sends
from tests.web.conftest import SCHEDULE, Shop, scheduled, watched

pytestmark = [pytest.mark.servers, pytest.mark.parametrize("server", ["embedded"], indirect=True)]
FIRES = "select kind, outcome from tasker.schedule_fires order by fire_at"


@pytest.fixture
def schedule(shop: Shop, page: Page) -> Page:
    """The page of a schedule that has not fired yet."""
    PLAIN.delete(f"{shop.root}/v1/schedules/{SCHEDULE}")
    scheduled(shop)
    page.goto(shop.url(f"schedules/{SCHEDULE}"))
    return page


def test_a_schedule_is_paused_and_resumed(shop: Shop, schedule: Page) -> None:
    act(schedule, "Pause", "/schedules/{namespace}/{template}/{name}/pause", Reason="a new source")
    expect(schedule.get_by_text("a new source")).to_be_visible()
    expect(schedule.get_by_text("None of them while it is paused.")).to_be_visible()
    assert shop.rows("select paused->>'reason' from tasker.schedules") == [("a new source",)]

    act(schedule, "Resume", "/schedules/{namespace}/{template}/{name}/resume")
    expect(schedule.get_by_text("Resumed.", exact=True)).to_be_visible()
    assert shop.rows("select paused from tasker.schedules") == [(None,)]


def test_a_triggered_task_is_in_the_history(shop: Shop, schedule: Page) -> None:
    act(schedule, "Trigger", "/schedules/{namespace}/{template}/{name}/trigger", Reason="now")
    expect(schedule.get_by_role("cell", name="trigger", exact=True)).to_be_visible()
    expect(schedule.get_by_role("cell", name=": now")).to_be_visible()
    assert shop.rows(FIRES) == [("trigger", "fired")]


def test_a_backfill_is_looked_at_first(shop: Shop, schedule: Page) -> None:
    schedule.get_by_label("From, in UTC").fill("2026-01-01")
    schedule.get_by_label("To, exclusive").fill("2026-01-03")
    schedule.get_by_role("button", name="Preview").click()
    expect(schedule.get_by_text("2 tasks", exact=True)).to_be_visible()
    assert shop.rows(FIRES) == []

    schedule.get_by_label("Reason").last.fill("lost")
    with sends(schedule, "/schedules/{namespace}/{template}/{name}/backfill"):
        schedule.get_by_role("button", name="Submit 2 tasks").click()
    expect(schedule.get_by_text("2 tasks will be submitted.")).to_be_visible()
    until(lambda: shop.rows(FIRES) == [("backfill", "fired")] * 2, "both are submitted")


def test_fire_times_are_in_the_zone_of_the_viewer(shop: Shop, browser: Browser) -> None:
    scheduled(shop)
    with watched(browser, shop.root, timezone_id="Asia/Kolkata") as strict:
        strict.page.goto(shop.url(f"schedules/{SCHEDULE}"))
        expect(strict.page.locator("time[data-local]").first).to_have_text(
            re.compile(r"^\d{4}-\d\d-\d\d 07:30:00 \+05:30$")
        )
