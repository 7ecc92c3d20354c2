"""What people do to tasks by mouse, followed to what a worker and the database make of it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tasker.server.web.pages.bulk import PORTION
from tests.support.waiting import until
from tests.web.by_mouse import act, opened_action, sends
from tests.web.conftest import Shop

pytestmark = [pytest.mark.servers, pytest.mark.parametrize("server", ["embedded"], indirect=True)]
MOVES = """select m.metadata->>'reason' from tasker.step_moves m join tasker.workflow_steps using (workflow_step_uuid)
    where task_uuid = %s and m.metadata ? 'reason' order by m.sort_key"""
LOOK_AGAIN = "document.dispatchEvent(new Event('visibilitychange'))"


def reasons(shop: Shop, task: str) -> list[str]:
    """What was typed as a reason for what was done to its steps by hand."""
    return [reason for (reason,) in shop.rows(MOVES, task)]


def result(shop: Shop, task: str) -> Any:
    return shop.report(task)["steps"]["fetch"]["result"]


def open_step(page: Page, name: str) -> None:
    page.locator(f"#box-{name}").click()
    expect(page.locator("#drawer-title")).to_contain_text(name)


def choose(page: Page, *tasks: str) -> None:
    for task in tasks:
        page.get_by_label(f"Choose {task}").check()


def test_what_failed_runs_again_when_it_is_retried(shop: Shop, page: Page) -> None:
    task = shop.failed()
    shop.mend(task)
    page.goto(shop.url(f"tasks/{task}"))
    act(page, "Retry failed", "/tasks/{uuid}/retry", Reason="the figures are there")
    expect(page.get_by_text("1 step will run again.")).to_be_visible()
    expect(page.locator("h1 .state")).to_contain_text("complete")
    assert shop.ended(task) == "complete"
    assert reasons(shop, task) == ["the figures are there"]


def test_one_failed_step_runs_again(shop: Shop, page: Page) -> None:
    task = shop.failed()
    shop.mend(task)
    page.goto(shop.url(f"tasks/{task}"))
    open_step(page, "fetch")
    act(page, "Run again", "/tasks/{uuid}/reset-step", Reason="once more")
    expect(page.get_by_text("fetch will run again.")).to_be_visible()
    assert shop.ended(task) == "complete"
    assert reasons(shop, task) == ["once more"]
    assert result(shop, task) == {"rows": 3}


def test_a_step_that_is_resolved_has_no_result_and_lets_the_others_run(shop: Shop, page: Page) -> None:
    task = shop.failed()
    page.goto(shop.url(f"tasks/{task}"))
    open_step(page, "fetch")
    act(page, "Resolve", "/tasks/{uuid}/resolve-step", Reason="not needed today")
    expect(page.get_by_text("fetch is taken as done.")).to_be_visible()
    assert shop.ended(task) == "complete"
    assert reasons(shop, task) == ["not needed today"]
    assert shop.states(task)["fetch"] == "resolved_manually"
    assert result(shop, task) is None


def test_a_cancelled_task_and_its_steps_end_though_one_was_running(shop: Shop, page: Page) -> None:
    task = shop.held()
    page.goto(shop.url(f"tasks/{task}"))
    act(page, "Cancel", "/tasks/{uuid}/cancel", Reason="asked for twice")
    expect(page.get_by_text("The task is cancelled.")).to_be_visible()
    expect(page.locator("h1 .state")).to_contain_text("cancelled")
    shop.let_go()
    assert shop.ended(task) == "cancelled"
    assert set(shop.states(task).values()) == {"cancelled"}
    assert shop.rows("select cancel_reason from tasker.task_details where task_uuid = %s", task) == [
        ("asked for twice",)
    ]
    expect(page.locator("summary", has_text="Cancel")).to_have_count(0)


def test_a_paused_task_starts_nothing_more_until_it_is_resumed(shop: Shop, page: Page) -> None:
    task = shop.held()
    page.goto(shop.url(f"tasks/{task}"))
    act(page, "Pause", "/tasks/{uuid}/pause", Reason="wait for Ada")
    expect(page.get_by_text("Paused: running steps continue")).to_be_visible()
    assert shop.rows("select reason from tasker.pauses where task_uuid = %s", task) == [("wait for Ada",)]

    shop.let_go()
    until(lambda: shop.states(task)["fetch"] == "complete", "what ran has ended")
    expect(page.locator("h1")).to_contain_text("paused")
    expect(page.locator(".needs")).to_contain_text("wait for Ada")
    assert shop.states(task)["choose"] in ("pending", "enqueued")

    act(page, "Resume", "/tasks/{uuid}/resume")
    expect(page.get_by_text(re.compile(r"Resumed: \d steps? can start now\."))).to_be_visible()
    assert shop.ended(task) == "complete"
    assert shop.rows("select 1 from tasker.pauses where task_uuid = %s", task) == []


def test_a_task_runs_again_from_a_step_with_another_input(shop: Shop, page: Page) -> None:
    first = shop.submit(note="first")
    assert shop.ended(first) == "complete"
    page.goto(shop.url(f"tasks/{first}"))
    open_step(page, "fetch")
    form = opened_action(page, "Rerun from here")
    given = form.get_by_label("Input of the new task")
    context = json.loads(given.input_value())
    assert context == {"amount": 3, "note": "first"}
    given.fill(json.dumps({**context, "amount": 5}))
    form.get_by_label("Reason").fill("five were meant")
    with sends(page, "/tasks/{uuid}/rerun"):
        form.get_by_role("button", name="Rerun").click()
    expect(page.get_by_text("A new task of")).to_be_visible()
    second = page.url.rpartition("/")[2]
    assert second != first
    assert shop.ended(second) == "complete"
    assert shop.report(second)["context"] == {"amount": 5, "note": "first"}
    assert [result(shop, task) for task in (first, second)] == [{"rows": 3}, {"rows": 5}]
    assert shop.rows("select reason from tasker.task_details where task_uuid = %s", second) == [("five were meant",)]


def test_a_task_that_runs_again_from_a_later_step_takes_over_what_came_before(shop: Shop, page: Page) -> None:
    first = shop.tasks["complete"]
    page.goto(shop.url(f"tasks/{first}"))
    open_step(page, "publish")
    act(page, "Rerun from here", "/tasks/{uuid}/rerun", Reason="publish it again")
    expect(page.get_by_text("are taken over.")).to_be_visible()
    second = page.url.rpartition("/")[2]
    assert shop.ended(second) == "complete"
    steps = shop.report(second)["steps"]
    assert steps["fetch"]["reused_from"] == first
    assert steps["publish"]["reused_from"] is None
    open_step(page, "fetch")
    page.locator("#drawer").get_by_role("link", name=first).click()
    expect(page).to_have_url(re.compile(first))


def test_the_chosen_tasks_are_cancelled_and_no_other(shop: Shop, page: Page) -> None:
    chosen, other = [shop.held(), shop.held()], shop.held()
    page.goto(shop.url("tasks?status=open"))
    choose(page, *chosen)
    page.get_by_role("button", name="Cancel…").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    assert {shop.states(task)["fetch"] for task in chosen} == {"in_progress"}, "a preview changes nothing"
    page.get_by_label("Reason").fill("no longer wanted")
    with sends(page, "/tasks/bulk", 200):
        page.get_by_role("button", name="Cancel: 2 tasks").click()
    expect(page.get_by_text("All 2 are processed.")).to_be_visible()
    assert [shop.ended(task) for task in chosen] == ["cancelled"] * 2
    shop.let_go()
    assert shop.ended(other) == "complete"


def test_the_chosen_tasks_run_again_as_new_ones(shop: Shop, page: Page) -> None:
    chosen = [shop.submit(note=f"again {number}") for number in range(2)]
    assert [shop.ended(task) for task in chosen] == ["complete"] * 2
    before = {task for (task,) in shop.rows("select task_uuid::text from tasker.tasks")}
    page.goto(shop.url("tasks?status=complete"))
    choose(page, *chosen)
    page.get_by_role("button", name="Rerun…").click()
    page.get_by_label("Reason").fill("once more")
    with sends(page, "/tasks/bulk", 200):
        page.get_by_role("button", name="Run again as new tasks: 2 tasks").click()
    expect(page.get_by_text("All 2 are processed.")).to_be_visible()
    new = {task for (task,) in shop.rows("select task_uuid::text from tasker.tasks")} - before
    assert [shop.ended(task) for task in new] == ["complete"] * 2
    assert {shop.report(task)["context"]["note"] for task in new} == {"again 0", "again 1"}


def test_what_is_done_to_many_tasks_leaves_out_those_to_which_it_means_nothing(shop: Shop, page: Page) -> None:
    failed, done = shop.failed(), shop.tasks["complete"]
    shop.mend(failed)
    page.goto(shop.url("tasks"))
    choose(page, failed, done)
    page.get_by_role("button", name="Retry failed…").click()
    expect(page.get_by_text("1 more of those chosen are skipped")).to_be_visible()
    page.get_by_label("Reason").fill("mended")
    with sends(page, "/tasks/bulk", 200):
        page.get_by_role("button", name="Retry failed steps: 1 task").click()
    assert shop.ended(failed) == "complete"
    assert reasons(shop, failed) == ["mended"]


def test_what_is_done_to_many_tasks_stops_and_goes_on_when_it_is_told_to(shop: Shop, page: Page) -> None:
    tasks = [shop.submit(fail=True) for _ in range(PORTION + 1)]
    assert {shop.ended(task) for task in tasks} == {"error"}
    page.clock.install()
    page.goto(shop.url(f"tasks/bulk?action=retry&task={'&task='.join(tasks)}"))
    page.get_by_label("Reason").fill("one by one")
    page.clock.pause_at(datetime.now(UTC) + timedelta(hours=1))  # it does not go on before it can be stopped
    with sends(page, "/tasks/bulk", 200):
        page.get_by_role("button", name="Retry failed steps: 26 tasks").click()
    page.get_by_role("button", name="Stop here").click()
    page.clock.run_for(10_000)
    expect(page.get_by_text("25 of 26 tasks: 25 done")).to_be_visible()
    assert sum(reasons(shop, task) == ["one by one"] for task in tasks) == PORTION
    with sends(page, "/tasks/bulk", 200):
        page.get_by_role("button", name="Go on with 1").click()
    expect(page.get_by_text("All 26 are processed.")).to_be_visible()
    assert all(reasons(shop, task) == ["one by one"] for task in tasks)


def test_a_list_is_kept_under_a_name_opened_and_forgotten(shop: Shop, page: Page) -> None:
    page.goto(shop.url("tasks"))
    page.get_by_label("Namespace").fill("shop")
    page.get_by_label("State").select_option("error")
    page.get_by_role("button", name="Show").click()
    act(page, "Save this view", "/tasks/views", Name="broken ones")
    expect(page.get_by_text("The view “broken ones” is saved.")).to_be_visible()
    assert shop.rows("select name, address from tasker.saved_views") == [("broken ones", "namespace=shop&status=error")]

    page.goto(shop.url("tasks"))
    view = page.get_by_role("link", name="broken ones")
    view.click()
    expect(page.get_by_label("State")).to_have_value("error")
    expect(view).to_have_attribute("aria-current", "page")
    act(page, "Remove this view", "/tasks/views/remove")
    expect(page.get_by_text("The view “broken ones” is removed.")).to_be_visible()
    expect(view).to_have_count(0)
    assert shop.rows("select name from tasker.saved_views") == []


def test_a_form_that_is_opened_while_the_page_looks_again_stays_open(shop: Shop, page: Page) -> None:
    address, waiting = shop.url(f"tasks/{shop.tasks['failed']}"), list[Route]()
    page.goto(address)
    page.route(address, lambda route: waiting.append(route))
    with page.expect_request(address):
        page.evaluate(LOOK_AGAIN)
    reason = opened_action(page, "Retry failed").get_by_label("Reason")
    reason.fill("half a rea")
    with page.expect_response(address):
        waiting[0].continue_()
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    expect(reason).to_be_visible()
    expect(reason).to_have_value("half a rea")

    page.unroute(address)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    with page.expect_response(address):
        page.evaluate(LOOK_AGAIN)
