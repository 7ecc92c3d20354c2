"""Names, messages and numbers that are larger than anybody draws them: what matters stays in sight."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.support.servers.plain_http import PLAIN
from tests.support.waiting import until
from tests.web.conftest import Shop, watched

pytestmark = [pytest.mark.servers, pytest.mark.parametrize("server", ["embedded"], indirect=True)]
SCROLLS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
LONG = "a_name_that_nobody_can_remember_" * 3 + "of_116_characters_xy"
STEP = "a_step_of_no_less_" * 6 + "characters"


@pytest.fixture
def narrow(browser: Browser, shop: Shop) -> Iterator[Page]:
    with watched(browser, shop.root, viewport={"width": 360, "height": 800}) as strict:
        yield strict.page


@pytest.fixture
def long_task(shop: Shop) -> str:
    """A task of a template, and with a step, whose names are long; nobody serves it."""
    text = f"name: {LONG}\nnamespace: shop\nversion: 1.0.0\nidentity_strategy: always_unique\n"
    text += f"steps: [{{name: {STEP}, handler: nobody.has_it}}]\n"
    answer = PLAIN.post(f"{shop.root}/v1/templates", json={"yaml": text, "force": True})
    assert answer.status_code in (200, 201), answer.text
    answer = PLAIN.post(f"{shop.root}/v1/tasks", json={"namespace": "shop", "name": LONG, "context": {}})
    return str(answer.json()["task_uuid"])


def right_edge(page: Page, selector: str) -> float:
    box = page.locator(selector).first.bounding_box()
    assert box is not None
    return box["x"] + box["width"]


def test_a_long_name_makes_no_page_wider_than_a_phone(shop: Shop, narrow: Page, long_task: str) -> None:
    found = {}
    for address in (
        f"tasks/{long_task}",
        f"tasks/{long_task}?step={STEP}",
        f"templates/shop/{LONG}/1.0.0",
        "tasks",
        "",
    ):
        narrow.goto(shop.url(address))
        found[address] = narrow.evaluate(SCROLLS)
    assert set(found.values()) == {0}, found


def test_the_state_of_a_task_is_seen_on_a_phone_without_scrolling_sideways(shop: Shop, narrow: Page) -> None:
    narrow.goto(shop.url("tasks"))
    assert right_edge(narrow, "td .state .shape") <= 260


def test_a_long_name_leaves_room_for_the_states_of_steps(shop: Shop, page: Page, long_task: str) -> None:
    page.goto(shop.url(f"tasks/{long_task}"))
    assert right_edge(page, "td .state") <= 640
    page.goto(shop.url("tasks"))
    assert right_edge(page, "td.name + td") <= 1280


def test_a_long_message_leaves_what_can_be_done_in_sight(shop: Shop, page: Page) -> None:
    task = shop.failed(note="figures that are not there " * 190)
    page.goto(shop.url(f"tasks/{task}"))
    message = page.locator(".notice .message")
    assert len(message.inner_text()) > 4000
    assert page.get_by_text("Retry failed").bounding_box()["y"] < 450  # type: ignore[index]
    message.focus()
    page.keyboard.press("End")
    until(lambda: message.evaluate("box => box.scrollTop") > 0, "the rest of it is read by keys")
