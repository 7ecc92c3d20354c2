"""Decisions of persons and compensation by mouse: the form of an approval, its signed link, and what undoes a task."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.support.servers.plain_http import PLAIN
from tests.support.waiting import until
from tests.web.by_mouse import act, sends
from tests.web.conftest import HANDLERS, Shop, opened, watched

pytestmark = [pytest.mark.servers, pytest.mark.parametrize("server", ["embedded"], indirect=True)]
PHONE = {"viewport": {"width": 390, "height": 780}}
ASKED = """
name: asked
namespace_name: desk
version: "1.0.0"
identity_strategy: always_unique
steps:
  - {name: reserve, handler: web.plain, compensate: web.plain}
  - name: approve
    type: approval
    description: Pay the bill
    dependencies: [reserve]
    form: {type: object, required: [cost_center], properties: {cost_center: {type: string, minLength: 3}}}
    timeout: never
    on_reject: fail
"""
KEYS = """
[common.approvals]
link_keys = ["a key for the tests that is long enough"]
"""


@pytest.fixture(scope="module")
def desk(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A shop whose server signs links, with the template `asked`."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "tasker.toml").write_text(KEYS)
    with pytest.MonkeyPatch.context() as patch, opened(folder, module_database_url, HANDLERS) as made:
        made.stop()
        patch.setenv("TASKER_CONFIG_PATH", str(folder / "tasker.toml"))
        made.start()
        assert PLAIN.post(f"{made.root}/v1/templates", json={"yaml": ASKED}).status_code == 201
        made.fleet.worker("desk", "--namespace", "desk", "--handlers", str(made.workflow))
        yield made


def asked(desk: Shop) -> str:
    """A task that waits for a decision."""
    body = {"namespace": "desk", "name": "asked", "context": {}}
    task = str(PLAIN.post(f"{desk.root}/v1/tasks", json=body).json()["task_uuid"])
    until(lambda: desk.states(task)["approve"] == "in_progress", "it waits for a person")
    return task


def test_a_person_approves_on_a_phone_after_a_mistake_is_named(desk: Shop, browser: Browser) -> None:
    task = asked(desk)
    with watched(browser, desk.root, **PHONE) as strict:
        strict.allowed, page = ("422",), strict.page
        page.goto(desk.url("approvals"))
        page.get_by_role("link", name="Pay the bill").first.click()
        page.get_by_label("Your name").fill("ann")
        page.get_by_label("Cost center").fill("R")
        page.get_by_label("Comment").fill("as agreed")
        with sends(page, "/approvals/{task_uuid}/{step}", 422):
            page.get_by_role("button", name="Approve").click()
        expect(page.get_by_label("Comment")).to_have_value("as agreed")
        page.get_by_label("Cost center").fill("R17")
        with sends(page, "/approvals/{task_uuid}/{step}"):
            page.get_by_role("button", name="Approve").click()
        expect(page.get_by_text("Nothing waits for your decision.")).to_be_visible()
    assert desk.ended(task) == "complete"


def test_a_signed_link_decides(desk: Shop, browser: Browser) -> None:
    task = asked(desk)
    made = PLAIN.post(f"{desk.root}/v1/approvals/{task}/approve/link", json={"subject": "ann"})
    with watched(browser, desk.root, **PHONE) as strict:
        strict.page.goto(f"{desk.root}{urlsplit(made.json()['url']).path}")
        with sends(strict.page, "/decide/{link}"):
            strict.page.get_by_role("button", name="Reject").click()
        expect(strict.page.get_by_text("You rejected this")).to_be_visible()
    assert desk.ended(task) == "error"


def test_effects_are_undone_from_the_page_of_the_task(desk: Shop, browser: Browser) -> None:
    task = asked(desk)
    body = {"decision": "rejected"}
    answer = PLAIN.post(f"{desk.root}/v1/approvals/{task}/approve/decision", json=body)
    assert answer.status_code == 200, answer.text
    assert desk.ended(task) == "error"
    with watched(browser, desk.root) as strict:
        strict.page.goto(desk.url(f"tasks/{task}"))
        act(strict.page, "Compensate", "/tasks/{uuid}/compensate", Reason="the guest does not come")
    until(lambda: desk.states(task).get("reserve.undo") == "complete", "its effect is undone")
