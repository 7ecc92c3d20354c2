"""What people do by mouse to templates, to the fleet and to their own session, followed to its effect."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.command_line import invoke
from tests.support.servers.brokers import free_port
from tests.support.servers.plain_http import PLAIN
from tests.support.waiting import until
from tests.web.by_mouse import DONE, act, opened_action, sends
from tests.web.conftest import TASKER, Shop, Strict, watched

pytestmark = [pytest.mark.servers, pytest.mark.parametrize("server", ["embedded"], indirect=True)]
REFUSED = "Failed to load resource"
TEMPLATE = """name: {name}
namespace: typed
version: {version}
steps:
  - {{name: look, handler: web.plain}}
  - {{name: pay, handler: web.plain, dependencies: [{above}]}}
"""
AUTHENTICATION = """
[orchestration.web.auth]
enabled = true
api_keys_enabled = true
[[orchestration.web.auth.api_keys]]
name = "ada"
key = "{digest}"
permissions = ["*"]
"""


def waits_for(shop: Shop, task: str, reason: str) -> None:
    """Until the task is known to wait for this; one that runs on never does."""
    until(lambda: reason in PLAIN.get(f"{shop.root}/v1/tasks/{task}/explain").text, f"{task} waits for {reason}")
    assert shop.states(task)["fetch"] in ("pending", "enqueued")


def pauses(shop: Shop) -> list[str]:
    return [reason for (reason,) in shop.rows("select reason from tasker.pauses")]


def pause(page: Page, what: str, name: str, reason: str, status: int = DONE) -> None:
    form = opened_action(page, "Pause something")
    form.get_by_label(re.compile("^What")).select_option(what)
    form.get_by_label("Its name").fill(name)
    form.get_by_label("Reason").fill(reason)
    with sends(page, "/fleet/pause", status):
        form.get_by_role("button", name="Pause").click()


def test_a_template_is_mended_where_it_is_wrong_and_then_registered(shop: Shop, strict: Strict) -> None:
    page, strict.allowed = strict.page, (REFUSED,)  # the wrong text is answered with 422
    page.goto(shop.url("templates"))
    page.get_by_role("link", name="Check or register a template").click()
    text = page.get_by_label("Text of one or more templates")
    text.fill(TEMPLATE.format(name="typed", version="1.0.0", above="lok"))
    with sends(page, "/templates/new", 422):
        page.get_by_role("button", name="Register").click()
    expect(page.locator("mark")).to_have_text("lok")
    expect(page.get_by_text("did you mean `look`?").first).to_be_visible()
    expect(text).to_have_value(re.compile(r"dependencies: \[lok\]"))
    assert shop.rows("select 1 from tasker.named_tasks where name = 'typed'") == []

    text.fill(TEMPLATE.format(name="typed", version="1.0.0", above="look"))
    with sends(page, "/templates/new", 200):
        page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Nothing is wrong with 1 template.")).to_be_visible()
    assert shop.rows("select 1 from tasker.named_tasks where name = 'typed'") == []
    with sends(page, "/templates/new"):
        page.get_by_role("button", name="Register").click()
    expect(page).to_have_url(shop.url("templates/typed/typed/1.0.0"))
    shop.fleet.worker("typed", "--namespace", "typed", "--handlers", str(shop.workflow))
    page.get_by_role("link", name="Submit a task").click()
    with sends(page, "/templates/{namespace}/{name}/{version}/submit"):
        page.get_by_role("button", name="Submit").click()
    expect(page.get_by_text("The task is submitted.")).to_be_visible()
    assert shop.ended(page.url.rpartition("/")[2]) == "complete"


def test_a_version_is_replaced_only_by_who_says_so(shop: Shop, strict: Strict) -> None:
    page, strict.allowed = strict.page, (REFUSED,)
    text = TEMPLATE.format(name="replaced", version="1.0.0", above="look")
    assert PLAIN.post(f"{shop.root}/v1/templates", json={"yaml": text}).status_code == 201
    page.goto(shop.url("templates/new"))
    page.get_by_label("Text of one or more templates").fill(f"{text}description: Other.\n")
    with sends(page, "/templates/new", 422):
        page.get_by_role("button", name="Register").click()
    expect(page.get_by_text("other content").first).to_be_visible()
    page.get_by_label("replace a version that has other content").check()
    with sends(page, "/templates/new"):
        page.get_by_role("button", name="Register").click()
    found = PLAIN.get(f"{shop.root}/v1/templates/typed/replaced/1.0.0").json()
    assert found["description"] == "Other."


def test_a_paused_template_starts_nothing_until_it_is_resumed(shop: Shop, page: Page) -> None:
    page.goto(shop.url("templates"))
    page.get_by_role("link", name="shop/report").click()
    act(page, "Pause", "/templates/{namespace}/{name}/pause", Reason="the books are closed")
    expect(page.get_by_text("the books are closed; it holds")).to_be_visible()
    assert pauses(shop) == ["the books are closed"]
    task = shop.submit()
    waits_for(shop, task, "the books are closed")
    act(page, "Resume", "/templates/{namespace}/{name}/resume")
    expect(page.get_by_text(re.compile(r"Resumed: \d steps? can start now\."))).to_be_visible()
    assert pauses(shop) == []
    assert shop.ended(task) == "complete"


def test_two_versions_are_compared(shop: Shop, page: Page) -> None:
    for version, above in (("1.0.0", "look"), ("1.1.0", "")):
        text = TEMPLATE.format(name="compared", version=version, above=above)
        assert PLAIN.post(f"{shop.root}/v1/templates", json={"yaml": text}).status_code == 201
    page.goto(shop.url("templates"))
    page.get_by_role("link", name="typed/compared").click()
    page.get_by_role("link", name="Versions").click()
    page.get_by_role("link", name="with 1.1.0").click()
    expect(page.get_by_role("heading", name="1.0.0 compared with 1.1.0")).to_be_visible()
    expect(page.locator("tr.changed td.left", has_text="look").first).to_be_visible()
    expect(page.locator("tr.changed", has_text="1.1.0").first).to_be_visible()


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("namespace", "shop"),
        ("template", "shop/report"),
        ("step", "shop/report/fetch"),
    ],
)
def test_what_is_paused_for_the_fleet_starts_nothing_until_it_is_resumed(
    shop: Shop, page: Page, what: str, name: str
) -> None:
    page.goto(shop.url("fleet"))
    pause(page, what, name, f"a new {what}")
    expect(page.get_by_role("row", name=f"{what} {name}")).to_be_visible()
    assert pauses(shop) == [f"a new {what}"]
    task = shop.submit()
    waits_for(shop, task, f"a new {what}")

    act(page, "Resume", "/fleet/resume")
    expect(page.get_by_text("can start now.")).to_be_visible()
    expect(page.get_by_text("Nothing is paused.")).to_be_visible()
    assert pauses(shop) == []
    assert shop.ended(task) == "complete"


def test_a_paused_queue_of_the_orchestration_keeps_its_messages_until_it_is_resumed(shop: Shop, page: Page) -> None:
    queue = "orchestration_task_requests"
    shop.fleet.orchestrator("orchestrator")
    page.goto(shop.url("fleet"))
    pause(page, "queue", queue, "a new broker")
    row = page.get_by_role("row", name=f"queue {queue}")
    expect(row).to_contain_text("a new broker")
    assert pauses(shop) == ["a new broker"]
    command = [*TASKER, "task", "request", "shop/report", "--set", "amount=3", "--database-url", shop.database_url]
    task = subprocess.run(command, cwd=shop.folder, capture_output=True, text=True, check=True).stdout.split()[-1]
    page.reload()
    expect(row.locator("td.number")).to_have_text("1")
    assert shop.rows("select 1 from tasker.tasks where task_uuid = %s", task) == []

    act(page, "Resume", "/fleet/resume")
    expect(page.get_by_text("1 message can start now.")).to_be_visible()
    assert pauses(shop) == []
    until(lambda: PLAIN.get(f"{shop.root}/v1/tasks/{task}").status_code == 200, "the request is met")
    assert shop.ended(task) == "complete"


def test_what_cannot_be_paused_is_told_with_what_was_typed(shop: Shop, strict: Strict) -> None:
    page, strict.allowed = strict.page, (REFUSED,)
    page.goto(shop.url("fleet"))
    pause(page, "template", "shop/reprot", "a mistake", 400)
    expect(page.locator(".notice.failed")).to_contain_text("reprot")
    expect(opened_action(page, "Pause something").get_by_label("Its name")).to_have_value("shop/reprot")
    assert "a mistake" not in pauses(shop)


def test_who_did_what_is_told_with_the_newest_first(shop: Shop, page: Page) -> None:
    task = shop.failed()
    page.goto(shop.url(f"tasks/{task}"))
    act(page, "Retry failed", "/tasks/{uuid}/retry", Reason="in vain")
    assert shop.ended(task) == "error"
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="Audit log").click()
    expect(page.locator("tbody tr").first).to_contain_text(f"/ui/tasks/{task}/retry")
    page.get_by_label("Actor").fill("nobody at all")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("No operator actions yet.")).to_be_visible()
    page.get_by_role("link", name="Doctor").click()
    expect(page.get_by_role("heading", name="Doctor")).to_be_visible()


@pytest.fixture(scope="module")
def key() -> dict[str, str]:
    made = json.loads(
        invoke("auth", "create-api-key", "--name", "ada", "--permissions", "*", "--format", "json").stdout
    )
    return {"shown": made["api_key"], "digest": made["configuration"]["key"]}


@pytest.fixture
def guarded(
    shop: Shop, key: dict[str, str], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    """The same shop by a server that asks who comes."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "tasker.toml").write_text(AUTHENTICATION.format(digest=key["digest"]))
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(folder / "tasker.toml"))
    made = Shop(folder, shop.database_url, shop.fleet, free_port(), shop.workflow)
    made.start()
    yield made
    made.stop()


def test_who_signs_in_acts_under_their_name_until_they_sign_out(
    browser: Browser, shop: Shop, guarded: Shop, key: dict[str, str]
) -> None:
    task = shop.failed()
    with watched(browser, guarded.root) as strict:
        page, strict.allowed = strict.page, (REFUSED,)  # the wrong key is answered with 401
        page.goto(guarded.url(f"tasks/{task}?view=history"))
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        expect(page.get_by_role("navigation", name="Pages")).to_have_count(0)
        page.get_by_label("API key or token").fill("another key")
        with sends(page, "/sign-in", 400):
            page.get_by_role("button", name="Sign in").click()
        page.get_by_label("API key or token").fill("another-key")
        with sends(page, "/sign-in", 401):
            page.get_by_role("button", name="Sign in").click()
        expect(page.locator(".notice.failed")).to_be_visible()
        page.get_by_label("API key or token").fill(key["shown"])
        with sends(page, "/sign-in"):
            page.get_by_role("button", name="Sign in").click()
        expect(page).to_have_url(guarded.url(f"tasks/{task}?view=history"))

        act(page, "Retry failed", "/tasks/{uuid}/retry", Reason="Ada wants it")
        acted = shop.rows("select actor, proof from tasker.operator_actions where path = %s", f"/ui/tasks/{task}/retry")
        assert acted == [("ada", "api_key")]
        page.goto(guarded.url("settings?q=auth"))
        expect(page.locator("body")).to_contain_text("You are signed in as ada.")
        expect(page.locator("main")).not_to_contain_text(key["shown"])

        with sends(page, "/sign-out"):
            page.get_by_role("button", name="Sign out").click()
        expect(page).to_have_url(guarded.url("sign-in"))
        page.goto(guarded.url(f"tasks/{task}"))
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        page.go_back()
        page.reload()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
