"""What people do by mouse to dead letters and to events that went astray, followed to its effect."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tasker_webhooks.signing import new_secret
from tests.support.waiting import until
from tests.web.by_mouse import act, opened_action, sends
from tests.web.conftest import Shop

pytestmark = [pytest.mark.servers, pytest.mark.parametrize("server", ["embedded"], indirect=True)]
ENTRY = """select resolution_status::text, resolution_notes, resolved_at is not null from tasker.tasks_dlq
    where task_uuid = %s order by dlq_timestamp"""
REPLAY = "select state, total, replayed, reason from tasker.dlq_replays where fingerprint = %s"
ALLOWED = "127.0.0.2"
PLUGIN = """
[plugins]
enabled = ["webhooks"]
[plugins.webhooks]
plain_http = true
private_networks = ["127.0.0.2/32"]
attempts = 4
first_retry_seconds = 0.05
[[plugins.webhooks.endpoints]]
name = "books"
url = "{url}"
secrets = ["{secret}"]
"""


def entries(shop: Shop, task: str) -> list[tuple[Any, ...]]:
    """Status, notes, and whether it is closed."""
    return shop.rows(ENTRY, task)


def open_entry(shop: Shop, page: Page, task: str) -> None:
    page.goto(shop.url("dead-letters/entries"))
    page.get_by_title(task).first.click()
    expect(page.get_by_role("heading", name="Investigation")).to_be_visible()


def keep(page: Page, notes: str, status: str) -> None:
    page.get_by_label("Notes").fill(notes)
    page.get_by_label("Status").select_option(status)
    with sends(page, "/dead-letters/entries/{entry}/update"):
        page.get_by_role("button", name="Keep").click()


def two_alike(shop: Shop, page: Page, note: str) -> tuple[list[str], str]:
    """Two tasks that failed alike, and their fingerprint; the page shows what a replay of them would do."""
    tasks = [shop.failed(note=note) for _ in range(2)]
    ((fingerprint,),) = shop.rows(
        "select distinct fingerprints[1] from tasker.tasks_dlq where task_uuid = any(%s::uuid[])", tasks
    )
    page.goto(shop.url("dead-letters/groups"))
    page.get_by_role("row", name=note).get_by_role("link", name="Replay…").click()
    expect(page.get_by_text("2 steps of 2 tasks run again")).to_be_visible()
    return tasks, fingerprint


def begin_replay(page: Page, rate: str, reason: str) -> None:
    form = page.locator("form.card")
    form.get_by_label("Tasks a second").fill(rate)
    form.get_by_label("Reason").fill(reason)
    with sends(page, "/dead-letters/replay"):
        form.get_by_role("button", name="Replay 2 tasks").click()


def test_what_was_found_is_kept_and_closes_an_entry_or_opens_it_again(shop: Shop, page: Page) -> None:
    task = shop.failed()
    assert entries(shop, task) == [("pending", None, False)]
    open_entry(shop, page, task)
    keep(page, "the figures come late", "pending")
    expect(page.get_by_text("Kept; the entry is pending.")).to_be_visible()
    assert entries(shop, task) == [("pending", "the figures come late", False)]
    keep(page, "they were sent by hand", "manually_resolved")
    expect(page.get_by_text("Kept; the entry is manually resolved.")).to_be_visible()
    assert entries(shop, task) == [("manually_resolved", "they were sent by hand", True)]
    keep(page, "no, they were not", "pending")
    expect(page.get_by_text("Kept; the entry is pending.")).to_be_visible()
    assert entries(shop, task) == [("pending", "no, they were not", False)]
    assert shop.ended(task) == "error", "the task stays as it is"


def test_an_entry_is_closed_by_running_its_task_again(shop: Shop, page: Page) -> None:
    task = shop.failed()
    shop.mend(task)
    open_entry(shop, page, task)
    act(page, "Retry and close", "/dead-letters/entries/{entry}/retry", Reason="the figures are there")
    expect(page.get_by_text("1 step will run again, and the entry is closed.")).to_be_visible()
    assert shop.ended(task) == "complete"
    assert entries(shop, task) == [("manually_resolved", "retried: the figures are there", True)]


def test_a_task_is_put_on_the_list_by_hand_and_goes_on(shop: Shop, page: Page) -> None:
    task = shop.held()
    page.goto(shop.url("dead-letters"))
    form = opened_action(page, "Open a dead letter")
    form.get_by_label("Task", exact=True).fill(task)
    form.get_by_label("What is suspected").fill("it asks the wrong shop")
    with sends(page, "/dead-letters/open"):
        form.get_by_role("button", name="Put it on the list").click()
    expect(page.get_by_text("The task is on the list; it continues.")).to_be_visible()
    assert [row[:2] for row in entries(shop, task)] == [("pending", "it asks the wrong shop")]
    assert shop.states(task)["fetch"] == "in_progress"
    shop.let_go()
    assert shop.ended(task) == "complete"


def test_what_failed_alike_is_replayed_as_the_preview_said(shop: Shop, page: Page) -> None:
    tasks, fingerprint = two_alike(shop, page, "of ada")
    assert shop.rows(REPLAY, fingerprint) == [], "a preview changes nothing"
    for task in tasks:
        shop.mend(task)
    begin_replay(page, "1000", "the figures are there")
    until(lambda: shop.rows(REPLAY, fingerprint)[0][0] == "complete", "it has come to its end")
    expect(page.locator("h1 .state")).to_contain_text("complete")
    expect(page.get_by_text("2 of 2 tasks")).to_be_visible()
    assert [shop.ended(task) for task in tasks] == ["complete"] * 2
    assert {entries(shop, task)[-1][0] for task in tasks} == {"manually_resolved"}
    assert shop.rows(REPLAY, fingerprint) == [("complete", 2, 2, "the figures are there")]


def test_a_replay_is_paused_goes_on_and_is_ended(shop: Shop, page: Page) -> None:
    tasks, fingerprint = two_alike(shop, page, "of charles")
    begin_replay(page, "0.001", "slowly")
    act(page, "Pause", "/dead-letters/replays/{replay}/pause")
    expect(page.get_by_text("Paused.")).to_be_visible()
    assert [row[0] for row in shop.rows(REPLAY, fingerprint)] == ["paused"]
    act(page, "Go on", "/dead-letters/replays/{replay}/resume")
    expect(page.get_by_text("Resumed.")).to_be_visible()
    assert [row[0] for row in shop.rows(REPLAY, fingerprint)] == ["running"]
    act(page, "End it", "/dead-letters/replays/{replay}/cancel")
    expect(page.get_by_text("Ended; steps already replayed are not affected.")).to_be_visible()
    assert [row[0] for row in shop.rows(REPLAY, fingerprint)] == ["cancelled"]
    assert "pending" in {entries(shop, task)[-1][0] for task in tasks}, "not all of them were replayed"
    expect(page.locator("details.action")).to_have_count(0)


@dataclass
class Books:
    """An endpoint of webhooks: the events that it has heard of, and what it answers."""

    status: int = 204
    heard: list[str] = field(default_factory=list)

    def handler(self) -> type[BaseHTTPRequestHandler]:
        books = self

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                books.heard.append(body["id"])
                self.send_response(books.status)
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                """Nothing: what matters is heard."""

        return Answers


@pytest.fixture(scope="module")
def books(shop: Shop) -> Iterator[Books]:
    """A second worker tells it of what steps publish."""
    found = Books()
    server = ThreadingHTTPServer((ALLOWED, 0), found.handler())
    Thread(target=server.serve_forever, daemon=True).start()
    path = shop.folder / "webhooks.toml"
    path.write_text(PLUGIN.format(url=f"http://{ALLOWED}:{server.server_port}", secret=new_secret()))
    shop.fleet.environment = {**shop.fleet.environment, "TASKER_CONFIG_PATH": str(path)}
    shop.fleet.program("books", "-m", "tasker", "worker", str(shop.workflow), "--database-url", shop.database_url)
    until(
        lambda: bool(shop.rows("select 1 from tasker.event_subscribers")),
        "it reads",
        show=lambda: shop.fleet.log("books"),
    )
    yield found
    server.shutdown()
    server.server_close()


def published(shop: Shop) -> str:
    """The event of a task that ends well."""
    task = shop.submit()
    assert shop.ended(task) == "complete"
    ((event,),) = shop.rows("select event_uuid::text from tasker.domain_events where task_uuid = %s", task)
    return str(event)


def test_a_subscriber_reads_events_again(shop: Shop, page: Page, books: Books) -> None:
    event = published(shop)
    until(lambda: books.heard.count(event) == 1, "it has heard of it", show=lambda: shop.fleet.log("books"))
    page.goto(shop.url("events"))
    act(page, "Read again", "/events/subscribers/{name}/replay", Behind_the_position="0")
    expect(page.get_by_text(re.compile(r"webhook:books reads \d+ events? again\."))).to_be_visible()
    until(lambda: books.heard.count(event) == 2, "it has heard of it again", show=lambda: shop.fleet.log("books"))


def test_what_a_subscriber_has_given_up_is_tried_again(shop: Shop, page: Page, books: Books) -> None:
    books.status = 500
    event = published(shop)
    given_up = "select event_uuid::text from tasker.event_deliveries where due_at is null"
    until(lambda: shop.rows(given_up) == [(event,)], "it is given up", show=lambda: shop.fleet.log("books"))
    books.status = 204
    books.heard.clear()
    page.goto(shop.url("events"))
    expect(page.locator("[data-copy='tasker webhook replay books']")).to_have_count(1)
    act(page, "Try given up again", "/events/subscribers/{name}/retry")
    expect(page.get_by_text("webhook:books tries 1 event again.")).to_be_visible()
    until(lambda: event in books.heard, "it has heard of it", show=lambda: shop.fleet.log("books"))
    until(lambda: shop.rows("select 1 from tasker.event_deliveries") == [], "it is settled")
