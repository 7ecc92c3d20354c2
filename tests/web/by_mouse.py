"""Actions as a user does them: a button is clicked, its form is filled in and sent, and the server has taken it.

Each names the route that it is sent to; `test_every_action` reads from the tests which routes are named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from playwright.sync_api import Locator, Page, Response

DONE = 303


def pattern(route: str) -> re.Pattern[str]:
    """Of the addresses of a route; `{...}` in it is anything but a slash."""
    parts = re.split(r"\{\w+\}", route)
    return re.compile("/ui" + "[^/]+".join(map(re.escape, parts)))


@contextmanager
def sends(page: Page, route: str, status: int = DONE) -> Iterator[None]:
    """What is done meanwhile sends a form to this route; it must be answered so."""

    def fits(answer: Response) -> bool:
        return answer.request.method == "POST" and pattern(route).fullmatch(urlsplit(answer.url).path) is not None

    with page.expect_response(fits) as answer:
        yield
    assert answer.value.status == status, answer.value.url


def opened_action(within: Page | Locator, title: str) -> Locator:
    """The form behind the button of an action."""
    summary = within.locator("details.action > summary").get_by_text(title, exact=True)
    summary.click()
    return within.locator("details.action[open] form")


def act(page: Page, title: str, route: str, status: int = DONE, **fields: str) -> None:
    """Open an action, fill in its fields by their labels (`_` is a space), and send it."""
    form = opened_action(page, title)
    for label, text in fields.items():
        form.get_by_label(label.replace("_", " ")).fill(text)
    with sends(page, route, status):
        form.locator(".buttons button").click()
