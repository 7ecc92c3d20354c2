"""What people do on pages, by mouse and by keys, and what moves by itself."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.servers.plain_http import PLAIN
from tests.web.by_mouse import sends
from tests.web.conftest import Shop, Strict

pytestmark = [pytest.mark.servers, pytest.mark.parametrize("server", ["embedded"], indirect=True)]
REFUSED = "Failed to load resource"
COLOURED = """([place, name]) => {
    const canvas = document.querySelector(`${place} canvas`);
    const colour = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const wanted = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let found = 0;
    for (let at = 0; at < data.length; at += 4)
        found += data[at + 3] > 200 && wanted.every((value, part) => Math.abs(data[at + part] - value) < 12);
    return found;
}"""  # how many points of a drawing have a colour of the style sheet
LEGEND = """[...document.querySelectorAll("#chart-tasks .u-series th")].flatMap(
    (name) => [name, name.querySelector(".u-label")].map((each) => getComputedStyle(each).color)
      .concat(getComputedStyle(name, "::before").backgroundColor))
    .filter((colour) => !colour.startsWith("rgba"))"""
AWAY = (REFUSED, "net::ERR", "htmx:")


def test_a_task_is_followed_while_it_runs(shop: Shop, page: Page) -> None:
    hold = shop.workflow / "hold"
    hold.touch()
    task = shop.submit(hold=True)
    page.goto(shop.url(f"tasks/{task}"))
    box = page.locator("#box-fetch")
    expect(box).to_contain_text("running")
    page.evaluate("window.kept = true")

    hold.unlink()

    expect(page.locator("h1 .state")).to_contain_text("complete")
    expect(box).to_contain_text("complete")
    expect(page.locator("#box-by_hand")).to_contain_text("not taken")
    expect(page.locator("#box-work_001")).to_contain_text("8/8")
    assert page.evaluate("window.kept"), "the page was not loaded again"


def test_a_step_is_shown_without_loading_the_page_again_and_back_takes_it_away(shop: Shop, page: Page) -> None:
    page.goto(shop.url(f"tasks/{shop.tasks['failed']}?view=history"))
    page.get_by_role("link", name="Graph and steps").click()
    page.evaluate("window.kept = true")
    page.locator("#box-fetch").click()
    expect(page.locator("#drawer")).to_contain_text("no figures today")
    expect(page).to_have_url(re.compile("step=fetch"))
    assert page.evaluate("window.kept"), "the page was not loaded again"
    assert page.evaluate("document.activeElement.id") == "drawer"
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.get_by_role("link", name="Close the step").click()
    expect(page.locator("#drawer")).to_have_count(0)
    page.go_back()
    expect(page.locator("#drawer")).to_contain_text("no figures today")


def test_a_failed_step_is_completed_by_hand_and_what_was_typed_stays(shop: Shop, strict: Strict) -> None:
    page, strict.allowed = strict.page, (REFUSED,)  # the form is answered with 400 once
    task = shop.submit(fail=True)
    assert shop.ended(task) == "error"
    page.goto(shop.url(f"tasks/{task}"))
    page.locator("#box-fetch").click()
    expect(page.locator("#drawer")).to_contain_text("no figures today")

    page.get_by_text("Complete with data").click()
    form = page.locator("details.action[open] form")
    form.get_by_label("Result").fill('{"rows": ')
    form.get_by_label("Reason").fill("by hand")
    with sends(page, "/tasks/{uuid}/complete-step", 400):
        form.get_by_role("button", name="Complete").click()
    expect(page.locator(".notice.failed").first).to_contain_text("not JSON")

    expect(page).to_have_url(re.compile(f"tasks/{task}\\?.*step=fetch$"))  # to be loaded again, or looked at again
    form = page.locator("details.action[open] form")
    expect(form.get_by_label("Reason")).to_have_value("by hand")
    expect(form.get_by_label("Result")).to_have_value('{"rows":')
    form.get_by_label("Result").fill('{"rows": 7}')
    with sends(page, "/tasks/{uuid}/complete-step"):
        form.get_by_role("button", name="Complete").click()
    expect(page.get_by_text("with the result that you gave")).to_be_visible()
    assert shop.ended(task) == "complete"


def test_an_open_form_is_not_taken_away_while_the_page_looks_again(shop: Shop, page: Page) -> None:
    page.goto(shop.url(f"tasks/{shop.tasks['failed']}"))
    page.get_by_text("Retry failed").click()
    reason = page.locator("details.action[open] input[name=reason]")
    reason.fill("half a rea")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(reason).to_have_value("half a rea")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("details.action[open]")).to_have_count(0)


def test_a_task_is_submitted_with_what_is_wrong_told_while_typing(shop: Shop, page: Page) -> None:
    page.goto(shop.url("templates/shop/report/1.0.0/submit"))
    with sends(page, "/templates/{namespace}/{name}/{version}/submit/check", 200):
        page.get_by_label("note").press_sequentially("x")
    expect(page.locator("#said")).to_contain_text("/amount")
    page.get_by_label("amount").press_sequentially("12")
    expect(page.locator("#said .notice")).to_have_count(0)
    expect(page.locator("#said")).to_contain_text('"amount": 12')
    with sends(page, "/templates/{namespace}/{name}/{version}/submit"):
        page.get_by_role("button", name="Submit").click()
    expect(page.get_by_text("The task is submitted.")).to_be_visible()
    assert shop.ended(page.url.rpartition("/")[2]) == "complete"


def test_many_tasks_are_chosen_and_dealt_with_by_themselves(shop: Shop, page: Page) -> None:
    tasks = [shop.submit(fail=True, note=str(number)) for number in range(30)]
    for task in tasks:
        assert shop.ended(task) == "error"
    page.goto(shop.url("tasks?status=error&within=1h"))
    page.get_by_label("of all that match").check()
    page.get_by_role("button", name="Retry failed…").click()
    page.get_by_label("Reason").fill("all of them")
    page.get_by_role("button", name=re.compile("Retry failed steps")).click()
    expect(page.get_by_text(re.compile(r"All \d+ are processed\."))).to_be_visible()


def test_keys_alone_lead_everywhere(shop: Shop, page: Page) -> None:
    page.goto(shop.url())
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page).to_have_url(shop.url("tasks"))
    page.keyboard.press("j")
    focused = page.evaluate("document.activeElement.getAttribute('href')")
    assert focused.startswith("/ui/tasks/")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/ui/tasks/.{36}$"))
    page.keyboard.press("?")
    expect(page.locator("dialog#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog#help")).not_to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("shop/report")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("namespace=shop&template=report"))
    page.goto(shop.url())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"


def test_the_theme_that_is_chosen_stays(shop: Shop, page: Page) -> None:
    page.goto(shop.url())
    page.get_by_role("button", name="Dark").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.goto(shop.url("tasks"))
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    page.get_by_role("button", name="Light").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark


def test_charts_are_drawn_once_and_go_on_with_every_look(shop: Shop, page: Page) -> None:
    page.goto(shop.url())
    for kind, line in (("tasks", "submitted"), ("waits", "median")):
        expect(page.locator(f"#chart-{kind} canvas")).to_be_visible()
        expect(page.locator(f"#chart-{kind} .u-legend")).to_contain_text(line)
    page.evaluate("document.querySelector('#chart-tasks canvas').kept = true")
    before = page.locator("#activity").text_content()
    shop.ended(shop.submit())
    expect(page.locator("#activity")).not_to_have_text(before or "")
    assert page.evaluate("document.querySelector('#chart-tasks canvas').kept"), "the chart was not drawn anew"
    page.get_by_role("button", name="Dark").click()
    page.set_viewport_size({"width": 400, "height": 800})
    expect(page.locator("#chart-tasks canvas")).to_be_visible()
    assert page.evaluate("document.querySelector('#chart-tasks .uplot').clientWidth") < 400


def test_a_chart_says_in_the_colours_of_the_theme_how_it_was_last(shop: Shop, page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(shop.url())
    legend = page.locator("#chart-tasks .u-legend")
    expect(legend).to_contain_text(re.compile(r"at\d\d:\d\dsubmitted[\d.]+ended"))
    expect(page.locator("#chart-waits .u-legend")).to_contain_text(re.compile(r"p95[\d.]+ m?s"))
    assert page.evaluate(COLOURED, ["#chart-waits", "--retries"]) > 5, "a slice between empty ones is seen"
    light = page.evaluate(LEGEND)
    page.get_by_role("button", name="Dark").click()
    assert set(page.evaluate(LEGEND)).isdisjoint(light)


def test_a_page_tells_an_absent_database_from_an_absent_server(shop: Shop, strict: Strict) -> None:
    strict.allowed, page = (*AWAY, "Error Code 503"), strict.page
    page.goto(shop.url())
    page.route(shop.url(), lambda route: route.fulfill(status=503, body="away"))
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.get_by_text("its database may be away")).to_be_visible()
    page.unroute(shop.url())
    expect(page.get_by_text("its database may be away")).not_to_be_visible()


def test_a_page_goes_on_when_the_server_comes_back(shop: Shop, strict: Strict) -> None:
    strict.allowed = AWAY
    page = strict.page
    page.goto(shop.url())
    shop.stop()
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.get_by_text("The server does not answer.")).to_be_visible()
    shop.start()
    expect(page.get_by_text("The server does not answer.")).not_to_be_visible()


def test_a_form_of_another_site_does_nothing(shop: Shop, strict: Strict) -> None:
    task = shop.submit(hold=False)
    shop.ended(task)
    answer = PLAIN.post(shop.url(f"tasks/{task}/rerun"), data={"step": "fetch", "reason": "x"})
    assert answer.status_code == 403
    page = strict.page
    page.goto(shop.url())
    token = page.context.cookies(shop.url())
    assert all(cookie["sameSite"] == "Lax" and cookie["httpOnly"] for cookie in token)


def test_a_link_in_a_mail_leaves_the_forms_of_other_tabs_valid(shop: Shop, strict: Strict) -> None:
    strict.page.goto(shop.url())
    cookies = strict.context.cookies(shop.url())
    mail = strict.context.new_page()
    mail.goto(f"data:text/html,<a href='{shop.url()}'>decide</a>")
    mail.get_by_text("decide").click()
    expect(mail).to_have_url(re.compile("/ui"))
    assert strict.context.cookies(shop.url()) == cookies


def test_a_graph_of_a_thousand_steps_is_drawn_and_can_be_used(shop: Shop, page: Page) -> None:
    steps = ["  - {name: root, handler: web.plain}"]
    steps += [
        f"  - {{name: s{n}, handler: web.plain, dependencies: [{f's{n - 40}' if n > 40 else 'root'}]}}"
        for n in range(1, 1000)
    ]
    text = "name: wide\nnamespace: quiet\nversion: 1.0.0\nsteps:\n" + "\n".join(steps)
    assert PLAIN.post(f"{shop.root}/v1/templates", json={"yaml": text}, timeout=60).status_code == 201
    body = {"namespace": "quiet", "name": "wide"}
    task = PLAIN.post(f"{shop.root}/v1/tasks", json=body).json()["task_uuid"]
    page.goto(shop.url(f"tasks/{task}"))
    assert page.locator("svg#graph .box").count() == 1000
    page.get_by_role("button", name="Fit").click()
    assert page.evaluate("document.querySelector('#graph').clientWidth") <= 1280
    page.locator("#box-root").click(force=True)
    expect(page.locator("#drawer")).to_contain_text("root")
