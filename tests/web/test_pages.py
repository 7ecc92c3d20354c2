"""Every page in a real browser: nothing fails, nothing is cut, everybody can read it."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urldefrag, urljoin

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.web.conftest import EVIL, Shop, Strict, addresses, watched

pytestmark = [pytest.mark.servers, pytest.mark.parametrize("server", ["embedded"], indirect=True)]
MISSING = "the server responded with a status of 404"
SCROLLS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
CUT = """() => [...document.querySelectorAll("button, .state, th, label, h1, h2, .figure, .tabs a")]
  .filter(each => each.offsetParent && !each.closest(".unseen") && getComputedStyle(each).display != "inline")
  .filter(each => each.closest("summary") || !each.closest("details:not([open])"))
  .filter(each => each.scrollWidth > each.clientWidth + 1)
  .map(each => each.outerHTML.slice(0, 120))"""


def serious(page: Page, *rules: str) -> list[object]:
    """What axe finds there that keeps somebody from using the page, by these rules or by all."""
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = page.evaluate("options => axe.run(options)", options)["violations"]
    return [
        (each["id"], [node["html"][:160] for node in each["nodes"]])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


def test_no_page_has_a_serious_finding_of_axe_by_light_nor_in_the_dark(browser: Browser, shop: Shop) -> None:
    script, found = Axe().axe_script, {}
    with watched(browser, shop.root) as strict:
        strict.allowed = (MISSING,)
        for address in addresses(shop):
            strict.page.emulate_media(color_scheme="light")
            strict.page.goto(shop.url(address))
            strict.page.evaluate(script)
            found[address] = serious(strict.page)
            strict.page.emulate_media(color_scheme="dark")  # which changes colours alone
            found[address] += serious(strict.page, "color-contrast")
    assert {address: wrong for address, wrong in found.items() if wrong} == {}


def test_no_page_scrolls_sideways_and_nothing_on_it_is_cut(browser: Browser, shop: Shop) -> None:
    found = {}
    with watched(browser, shop.root) as strict:
        strict.allowed = (MISSING,)
        for address in addresses(shop):
            strict.page.goto(shop.url(address))
            for width in (1280, 768, 360):
                strict.page.set_viewport_size({"width": width, "height": 800})
                found[address, width] = strict.page.evaluate(SCROLLS), strict.page.evaluate(CUT)
    assert {where: wrong for where, wrong in found.items() if wrong != (0, [])} == {}


def test_every_page_can_be_read_without_scripts(browser: Browser, shop: Shop) -> None:
    with watched(browser, shop.root, java_script_enabled=False) as strict:
        strict.allowed = (MISSING,)
        for address in addresses(shop):
            strict.page.goto(shop.url(address))
            assert strict.page.locator("h1").first.inner_text()
        strict.page.goto(shop.url(f"tasks/{shop.tasks['complete']}"))
        assert strict.page.locator("svg#graph a").count() >= 6
        assert "work_001..008" in strict.page.inner_text("body")


def links(client: httpx.Client, address: str) -> set[str]:
    found = re.findall(r'href="([^"]+)"', client.get(address).text)
    return {urldefrag(urljoin(address, unescape(each))).url for each in found}


def test_no_link_of_a_page_leads_nowhere(shop: Shop) -> None:
    pages = {shop.url(address) for address in addresses(shop)} - {shop.url("nowhere")}
    with httpx.Client(follow_redirects=True, timeout=60) as client:
        linked = set().union(*(links(client, each) for each in pages))
        answers = {each: client.get(each).status_code for each in linked - pages}
    assert len(answers) > len(pages)
    assert {each: status for each, status in answers.items() if status != 200} == {}


def test_what_a_task_holds_is_shown_as_text_and_never_run(shop: Shop, strict: Strict) -> None:
    for task in shop.tasks.values():
        for view in ("graph", "timeline", "logs", "history", "data"):
            strict.page.goto(shop.url(f"tasks/{task}?view={view}&step=fetch"))
            assert "owned" not in strict.page.title()
    assert EVIL in strict.page.inner_text("body")
    strict.page.goto(shop.url("tasks"))
    assert EVIL in strict.page.inner_text("body")
    assert "owned" not in strict.page.title()
