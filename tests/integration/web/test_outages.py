"""The database is away, or too slow: a page says so, and what was typed into a form is not lost."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import LiteralString

import httpx
import psycopg
import pytest
import pytest_asyncio

import tasker
from tasker.server.application import NotReady
from tasker.server.envelope import RequestLimits
from tasker.server.web.error_pages import answer_below
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission
from tasker.template import compile_text
from tests.integration.api.program import ORDERS, WAITING
from tests.integration.web.conftest import Site, offered
from tests.support.servers.private_postgres import Stoppable, copied
from tests.support.waiting import LIMIT_SECONDS, LOOK_SECONDS

TYPED = 'half a page about "why" & <b>how</b>\nand a second line'
AWAY = re.compile("the database is unreachable|the connection to the database was lost")
FIELD = re.compile(r'<(?:input|textarea)[^>]* name="([^"]+)"[^>]*?(?: value="([^"]*)")?>(?:\n?([^<]*)</textarea>)?')


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory, cluster: Path) -> Iterator[Stoppable]:
    database = Stoppable(copied(cluster, tmp_path_factory.mktemp("outage") / "pg"))
    yield database
    database.server.stop()


@dataclass(frozen=True)
class Scene:
    """A program whose database can be stopped, a task of it and its dead letter."""

    app: tasker.App
    postgres: Stoppable
    task: str
    entry: str


@pytest_asyncio.fixture(loop_scope="module")
async def scene(postgres: Stoppable) -> AsyncIterator[Scene]:
    async with tasker.App(postgres.server.url, work=False) as app:
        for text in (WAITING, ORDERS):
            await app.plans.register(compile_text(text).plans[0], force=True)
        task = (await app.submissions.submit(TemplateSubmission("nobody", "waiting", None, Submission({})))).task_uuid
        entry = await app.dead_letters.open(task, actor="ada", notes="", reason="manual_dlq")
        yield Scene(app, postgres, task, entry.dlq_entry_uuid)


def fields_in(answer: httpx.Response) -> dict[str, str]:
    """The fields of the form that sends again what was typed."""
    form = answer.text.partition('id="again"')[2].partition("</form>")[0]
    return {unescape(name): unescape(value or text) for name, value, text in FIELD.findall(form)}


def is_page(answer: httpx.Response, status: int) -> str:
    """What it says."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    return unescape(answer.text)


FORMS = {
    "tasks/{task}/cancel": {"reason": TYPED},
    "tasks/{task}/pause": {"reason": TYPED},
    "tasks/{task}/rerun": {"step": "never", "reason": "again", "context": '{"n": 1,\n "m": 2}'},
    "tasks/{task}/complete-step": {"step": "never", "reason": "by hand", "result": '{"rows":\n 7}'},
    "dead-letters/entries/{entry}/update": {"notes": TYPED, "status": "pending"},
    "dead-letters/open": {"task": "{task}", "notes": TYPED},
    "dead-letters/replay": {"all": "yes", "note": TYPED, "rate": "3"},
    "tasks/views": {"name": "mine", "address": "status=error"},
    "tasks/bulk": {"action": "cancel", "reason": TYPED, "left": "{task}"},
    "templates/nobody/waiting/pause": {"reason": TYPED},
    "templates/shop/orders/1.0.0/submit": {"input:/amount": "12", "input:/lines": '[{"sku": "a"}]', "tags": "x y"},
}


async def test_database_that_is_away_is_a_page_and_takes_no_text_away(scene: Scene) -> None:
    forms = {
        path.format(task=scene.task, entry=scene.entry): {
            name: value.format(task=scene.task) if value == "{task}" else value for name, value in fields.items()
        }
        for path, fields in FORMS.items()
    }
    async with offered(scene.app, closed=True) as site:
        await site.sign_in("everything")
        token = await site.token()
        scene.postgres.stop()
        try:
            for path in ("", "tasks", f"tasks/{scene.task}?view=data", "dead-letters", "templates", "sign-in"):
                told = is_page(await site.client.get(f"/ui/{path}".rstrip("/")), 503)
                assert AWAY.search(told)
                assert f'<a href="/ui/{path}'.rstrip("/") in told, "the same address again"
                assert "Try again" in told
            for path, fields in forms.items():
                answer = await site.client.post(f"/ui/{path}", data={"form_token": token, **fields})
                assert AWAY.search(is_page(answer, 503)), path
                assert f'action="/ui/{path}"' in answer.text
                assert fields_in(answer) == {"form_token": token, **fields}
                assert "<b>" not in answer.text
        finally:
            scene.postgres.start()
        async with asyncio.timeout(LIMIT_SECONDS):  # until the pool connects again
            while (await site.get("tasks")).status_code == 503:
                await asyncio.sleep(LOOK_SECONDS)
        answer = await site.client.post(f"/ui/tasks/{scene.task}/cancel", data={"form_token": token, "reason": TYPED})
        assert answer.status_code == 303
    assert (await scene.app.tasks.report(scene.task)).cancel_reason == TYPED


async def test_form_of_another_site_is_not_shown_again(scene: Scene) -> None:
    async with offered(scene.app, closed=True) as site:
        await site.sign_in("everything")
        token = await site.token()
        scene.postgres.stop()
        try:
            for fields, headers in (
                ({"form_token": "x" * 43, "reason": TYPED}, {}),
                ({"form_token": token, "reason": TYPED}, {"Sec-Fetch-Site": "cross-site"}),
            ):
                answer = await site.client.post(f"/ui/tasks/{scene.task}/cancel", data=fields, headers=headers)
                is_page(answer, 503)
                assert "half a page" not in answer.text
        finally:
            scene.postgres.start()


async def test_signing_in_during_an_outage_keeps_no_credential(scene: Scene) -> None:
    async with offered(scene.app, closed=True) as site:
        token = await site.token()
        scene.postgres.stop()
        try:
            data = {"form_token": token, "credential": "everything", "next": "tasks?status=error"}
            answer = await site.client.post("/ui/sign-in", data=data)
        finally:
            scene.postgres.start()
        assert AWAY.search(is_page(answer, 503))
        assert 'name="next" value="tasks?status=error"' in answer.text
        assert "everything" not in answer.text
        assert "tasker_session" not in answer.headers.get("set-cookie", "")


async def test_sensitive_input_is_not_shown_when_a_form_comes_back(scene: Scene) -> None:
    async with offered(scene.app) as site:
        data = {"form_token": await site.token(), "input:/card": "4111", "input:/note": "seen", "secret": "/card"}
        scene.postgres.stop()
        try:
            answer = await site.client.post("/ui/templates/shop/orders/1.0.0/submit", data=data)
        finally:
            scene.postgres.start()
    assert re.search(r'<input[^>]* name="input:/card"[^>]* type="password"[^>]* value="4111"', answer.text)
    assert not re.search(r'name="input:/note"[^>]* type="password"', answer.text)


@asynccontextmanager
async def locked(url: str, table: LiteralString) -> AsyncIterator[None]:
    """A table that nobody can read meanwhile."""
    async with await psycopg.AsyncConnection.connect(url) as holder:
        await holder.execute(b"lock table " + table.encode() + b" in access exclusive mode")
        yield
        await holder.rollback()


async def test_page_that_takes_too_long_is_a_page_and_keeps_a_form(app: tasker.App, module_database_url: str) -> None:
    task = (await app.submissions.submit(TemplateSubmission("nobody", "waiting", None, Submission({"n": 1})))).task_uuid
    async with offered(app, limits=RequestLimits(seconds=0.3)) as site:
        token = await site.token()
        async with locked(module_database_url, "tasker.saved_views"):
            told = is_page(await site.get("tasks", status="error"), 504)
            assert "not ready within 0.3 seconds" in told
            assert '<a href="/ui/tasks?status=error">Try again' in told
        async with locked(module_database_url, "tasker.tasks"):
            data = {"form_token": token, "reason": TYPED}
            answer = await site.client.post(f"/ui/tasks/{task}/cancel", data=data)
            assert "it is unknown whether the change was made" in is_page(answer, 504)
            assert fields_in(answer) == data
        assert (await site.get("help")).status_code == 200


async def test_form_whose_session_is_over_comes_back(closed: Site, module_database_url: str) -> None:
    await closed.sign_in("everything")
    token = await closed.token()
    with psycopg.connect(module_database_url) as connection:
        connection.execute("delete from tasker.page_sessions")
    data = {"form_token": token, "notes": TYPED, "task": "x"}
    answer = await closed.client.post("/ui/dead-letters/open", data=data)
    assert "you are no longer signed in" in is_page(answer, 401)
    assert 'href="/ui/sign-in"' in answer.text
    assert fields_in(answer) == data
    asked = await closed.client.post("/ui/dead-letters/open", data={**data, "form_token": "x" * 43})
    assert (asked.status_code, asked.headers["location"]) == (303, "/ui/sign-in")


@pytest.mark.parametrize("root_path", ["", "/tasker"])
async def test_server_that_waits_for_its_database_answers_browsers_with_a_page(root_path: str) -> None:
    starting = NotReady(RequestLimits(), root_path, answer_below(root_path))
    transport = httpx.ASGITransport(app=starting)
    async with httpx.AsyncClient(transport=transport, base_url="http://tasker.test") as client:
        for path in ("/ui", "/ui/tasks?status=error"):
            answer = await client.get(f"{root_path}{path}")
            told = is_page(answer, 503)
            assert "waits for its database" in told
            assert f'<a href="{root_path}{path}">Try again' in told
            assert answer.headers["retry-after"] == "5"
            assert '<meta http-equiv="refresh" content="5">' in told
        for path in ("/v1/tasks", "/v1/tasks/ui", "/uii"):
            answer = await client.get(f"{root_path}{path}")
            assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")


@pytest.mark.parametrize("root_path", ["", "/tasker"])
async def test_form_sent_to_a_server_that_starts_is_shown_again(root_path: str) -> None:
    token = "t" * 43
    starting = NotReady(RequestLimits(), root_path, answer_below(root_path))
    data = {"form_token": token, "step": "never", "reason": TYPED, "result": '{"rows":\n 7}'}
    address = f"{root_path}/ui/tasks/1/complete-step"
    transport, cookies = httpx.ASGITransport(app=starting), {"tasker_form": token}
    async with httpx.AsyncClient(transport=transport, base_url="http://tasker.test", cookies=cookies) as client:
        answer = await client.post(address, data=data)
        told = is_page(answer, 503)
        assert "waits for its database" in told
        assert f'action="{address}"' in told
        assert fields_in(answer) == data
        assert "<b>" not in answer.text
        assert "http-equiv" not in answer.text, "a reload would take the text away"

        for fields, headers in (
            ({**data, "form_token": "x" * 43}, {}),
            (data, {"Sec-Fetch-Site": "cross-site"}),
        ):
            answer = await client.post(address, data=fields, headers=headers)
            assert "half a page" not in is_page(answer, 503)
        answer = await client.post(address, content=b"half a page", headers={"Content-Type": "text/plain"})
        assert "half a page" not in is_page(answer, 503)
        large = await client.post(address, data={**data, "reason": "x" * RequestLimits().body_bytes})
        is_page(large, 413)
