"""Templates on pages: reading, checking, registering, comparing, submitting, pausing."""

from __future__ import annotations

import asyncio
import re
from html import unescape
from itertools import count
from pathlib import Path

import pytest

import tasker
from tasker.services.operators.pauses import PauseTarget
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission
from tasker.template import compile_text
from tests.integration.web.conftest import Site
from tests.support.command_line import write_workflow

EVIL = "<script>alert(1)</script>"
ORDERS = "templates/shop/orders/1.0.0"
number = count(900_000)
TEXT = """name: fresh{n}
namespace: shop
version: {version}
description: "{about}"
input_schema:
  type: object
  properties: {{"{evil}": {{type: string, description: "{evil}"}}, amount: {{type: integer, minimum: 3}}}}
steps:
  - {{name: look, handler: shop.check}}
  - {{name: pay, handler: shop.charge, dependencies: [look]}}
"""


def workers_of(page: str) -> list[str]:
    """How many have the handler of each step."""
    return re.findall(r'<code>[\w.]+</code></td>\s*<td class="number(?: bad)?">(\d+)</td>', page)


def text_of(n: int, version: str = "1.0.0", about: str = "About") -> str:
    return TEXT.format(n=n, version=version, about=about, evil=EVIL)


async def test_the_list_names_every_template_with_its_newest_version(app: tasker.App, site: Site) -> None:
    done = await app.submit("shop/orders", {"amount": next(number)})
    await app.wait(done.task_uuid)
    text = await site.text("templates")
    assert f'href="/ui/{ORDERS}"' in text
    assert "Checks an order and takes the money." in text
    assert "100 %" in text


async def test_a_template_shows_its_graph_who_serves_it_and_how_it_does(app: tasker.App, site: Site) -> None:
    done = await app.submit("shop/orders", {"amount": next(number)})
    await app.wait(done.task_uuid)
    text = await site.text(ORDERS)
    assert re.findall(r"<title>(\w+): standard</title>", text) == ["check", "charge"]
    assert "shop.charge" in text
    assert "Of the newest" in text
    redirect = await site.get("templates/shop/orders")
    assert redirect.headers["location"] == f"/ui/{ORDERS}"
    assert "name: orders" in await site.text(ORDERS, view="yaml")
    assert (await site.get("templates/shop/nothing")).status_code == 404
    assert (await site.get(ORDERS, view="dance")).status_code == 400


async def test_handlers_beside_another_workflow_are_no_workers_of_a_template(
    app: tasker.App, site: Site, tmp_path: Path
) -> None:
    text = "name: {}\nnamespace: shop\nversion: 1.0.0\nsteps: [{{name: look, handler: neighbours.look}}]\n"
    handlers = """
        from tasker.step_handler import step_handler

        @step_handler("neighbours.look")
        async def look():
            return {}
    """
    near = await app.submit(write_workflow(tmp_path / "near", text.format("near"), handlers), {})
    await app.wait(near.task_uuid)
    await app.plans.register(compile_text(text.format("far")).plans[0])
    far = await app.submissions.submit(TemplateSubmission("shop", "far", None, Submission({})))

    async with asyncio.timeout(60):
        while [each.reason for each in (await app.tasks.explain(far.task_uuid)).reasons] != ["unserved"]:
            await asyncio.sleep(0.05)
    assert workers_of(await site.text("templates/shop/near/1.0.0")) == ["1"]
    page = await site.text("templates/shop/far/1.0.0")
    assert workers_of(page) == ["0"]
    assert "could not find when it took the step" in page


async def test_a_text_is_checked_with_every_problem_in_its_place(site: Site) -> None:
    wrong = text_of(1).replace("dependencies: [look]", "dependencies: [lok]")
    answer = await site.post("templates/new", text=wrong, do="check")
    assert answer.status_code == 422
    assert "did you mean `look`?" in answer.text
    assert "<mark>lok</mark>" in answer.text
    assert EVIL not in answer.text
    assert "dependencies: [lok]" in answer.text
    right = await site.post("templates/new", text=text_of(1), do="check")
    assert "Nothing is wrong with 1 template." in right.text
    assert (await site.get("templates/shop/fresh1")).status_code == 404
    for text in ("", "name: [", "a: &x [*x]", "- 1", "\x01"):
        assert (await site.post("templates/new", text=text, do="check")).status_code in (400, 422), text


async def test_a_text_is_registered_once_and_refused_with_other_content(app: tasker.App, site: Site) -> None:
    n = next(number)
    answer = await site.post("templates/new", text=text_of(n), do="register")
    assert answer.url.path == f"/ui/templates/shop/fresh{n}/1.0.0"
    assert (await app.plans.find("shop", f"fresh{n}")).plan.version == "1.0.0"
    other = await site.post("templates/new", text=text_of(n, about="Other"), do="register")
    assert other.status_code == 422
    assert "registered with other content" in other.text
    forced = await site.post("templates/new", text=text_of(n, about=EVIL), do="register", force="yes")
    assert forced.status_code == 200
    assert EVIL not in forced.text


@pytest.mark.parametrize(("first", "second"), [("1.0.0", "1.1.0"), ("1.0.0+build.5", "1.0.0+build.6")])
async def test_two_versions_stand_side_by_side(site: Site, first: str, second: str) -> None:
    n = next(number)
    await site.post("templates/new", text=text_of(n, version=first), do="register")
    answer = await site.post("templates/new", text=text_of(n, version=second, about="Changed"), do="register")
    assert answer.url.path == f"/ui/templates/shop/fresh{n}/{second}"
    text = await site.text(f"templates/shop/fresh{n}/{second}", view="versions", **{"with": first})
    assert "description: About" in text
    assert "+ description: Changed" in text
    assert (await site.get(f"templates/shop/fresh{n}/{second}", view="versions", **{"with": "9"})).status_code == 404


async def test_a_task_is_submitted_by_the_form_of_its_schema(app: tasker.App, closed: Site) -> None:
    await closed.sign_in("everything")
    form = await closed.text(f"{ORDERS}/submit")
    assert 'name="input:/amount"' in form
    assert 'name="input:/lines"' in form
    amount = next(number)
    fields = {"input:/amount": str(amount), "tags": "a b", "priority": "3", "reason": "by the page"}
    answer = await closed.post(f"{ORDERS}/submit", **fields)
    task = answer.url.path.rpartition("/")[2]
    await app.wait(task)
    report = await app.tasks.report(task)
    assert (report.context, report.priority, report.initiator) == ({"amount": amount}, 3, "ada")
    assert list(report.tags) == ["a", "b"]

    twice = await closed.post(f"{ORDERS}/submit", **fields)
    assert twice.status_code == 409
    assert f'href="/ui/tasks/{task}"' in twice.text


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "/amount"),
        ({"input:/amount": "much"}, "/amount"),
        ({"input:/amount": "1", "input:/lines": "[{}]"}, "/lines/0/sku"),
        ({"input:/amount": "1", "input:/lines": "["}, "not JSON"),
        ({"input:/amount": "1", "input:/lines": '[{"sku": "a", "sku": "b"}]'}, "/0/sku: is given twice in one object"),
        *(
            ({"input:/amount": "1", "priority": priority}, "or a whole number")
            for priority in ("hihg", "+-5", "--5", "-", "1.5", "9" * 5000, "2147483648")
        ),
        ({"input:/amount": "1", "correlation_id": "x"}, "correlation"),
        ({"input:/amount": "1", "delay": "5"}, "delay: expected a duration"),
        ({"input:/amount": "1", "deadline": "soon"}, "deadline: expected a duration"),
        ({"input:/amount": "1", "run_at": "tomorrow"}, "run_at: expected a time with a zone"),
    ],
)
async def test_what_does_not_fit_is_told_and_stays_in_the_form(site: Site, fields: dict[str, str], told: str) -> None:
    answer = await site.post(f"{ORDERS}/submit", **fields)
    assert answer.status_code in (400, 422)
    assert told in answer.text
    assert all(value in unescape(answer.text) for value in fields.values())


async def test_a_task_for_later_shows_its_time_on_the_page_and_in_the_list(site: Site) -> None:
    fields = {"input:/amount": str(next(number)), "run_at": "2099-01-31T18:00:00Z"}
    answer = await site.post(f"{ORDERS}/submit", **fields)
    assert "scheduled: its task was submitted to begin at 2099-01-31" in answer.text
    assert 'until <time datetime="2099-01-31T18:00:00' in await site.text("tasks")


@pytest.mark.parametrize(("typed", "priority"), [("-5", -5), ("+5", 5), ("-2147483648", -(2**31)), ("low", -10)])
async def test_priority_with_a_sign_is_that_of_the_task(app: tasker.App, site: Site, typed: str, priority: int) -> None:
    answer = await site.post(f"{ORDERS}/submit", **{"input:/amount": str(next(number)), "priority": typed})
    assert answer.status_code == 200
    assert f"<dt>Priority</dt><dd>{priority}</dd>" in answer.text
    assert (await app.tasks.report(answer.url.path.rpartition("/")[2])).priority == priority


async def test_typing_is_checked_and_submits_nothing(app: tasker.App, closed: Site) -> None:
    await closed.sign_in("everything")
    before = len(await app.operator_log.list(limit=500))
    answer = await closed.post(f"{ORDERS}/submit/check", **{"input:/amount": "much"})
    assert 'id="said"' in answer.text
    assert "/amount" in answer.text
    fine = await closed.post(f"{ORDERS}/submit/check", **{"input:/amount": str(next(number))})
    assert "tasker task submit shop/orders:1.0.0 --input" in fine.text
    assert 'class="notice failed said"' not in fine.text
    assert len(await app.operator_log.list(limit=500)) == before


async def test_a_template_is_paused_and_resumed(app: tasker.App, site: Site) -> None:
    assert "Paused: running steps continue" in (await site.post("templates/shop/named/pause", reason="to see")).text
    assert [str(pause.template) for pause in (await app.pauses.list()).pauses] == ["named"]
    assert "to see" in await site.text("templates/shop/named/1.0.0")
    assert "Resumed" in (await site.post("templates/shop/named/resume")).text
    assert (await app.pauses.list()).pauses == []
    assert (await site.post("templates/shop/named/pause")).status_code == 400
    assert await app.pauses.resume(PauseTarget.of(template="shop/named"), actor="ada", reason="") is None


@pytest.mark.parametrize(("key", "told"), [("but-system:pauses_read", False), ("everything", True)])
async def test_pause_is_shown_to_who_may_read_pauses(app: tasker.App, closed: Site, key: str, told: bool) -> None:
    await app.pauses.pause(PauseTarget.of(template="shop/named"), actor="grace", reason="audit of the till")
    await closed.sign_in(key)
    pages = [await closed.text(page) for page in ("templates/shop/named/1.0.0", "fleet")]
    assert await app.pauses.resume(PauseTarget.of(template="shop/named"), actor="grace", reason="audited") is not None
    log = await closed.text("fleet")

    assert [("grace" in text, "audit of the till" in text) for text in (*pages, log)] == [(told, told)] * 3
    assert ["Nothing is paused." in text for text in (pages[1], log)] == [False, told]
    assert "Pause something" in log


async def test_each_page_keeps_to_what_its_caller_may(app: tasker.App, closed: Site) -> None:
    await closed.sign_in("only-templates:read")
    text = await closed.text(ORDERS)
    for word in ("Submit a task", "Pause", "Its tasks"):
        assert word not in text
    assert "Tasks, 1 h" not in await closed.text("templates")
    assert (await closed.get("templates/new")).status_code == 403
    assert (await closed.post("templates/new", text=text_of(2), do="register")).status_code == 403
    assert (await closed.post(f"{ORDERS}/submit", **{"input:/amount": "1"})).status_code == 403
    assert (await closed.post("templates/shop/orders/pause", reason="x")).status_code == 403
    await closed.sign_in("confined")
    assert "nobody/waiting" not in await closed.text("templates")
    assert (await closed.get("templates/nobody/waiting/1.0.0")).status_code == 403
    foreign = text_of(3).replace("namespace: shop", "namespace: elsewhere")
    assert (await closed.post("templates/new", text=foreign, do="register")).status_code == 403
