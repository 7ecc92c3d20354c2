"""What is true of every page: who may see it, how it says what went wrong, what a browser is told."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import quote

import httpx
import pytest
from fastapi.routing import APIRoute

import tasker
from tasker.operations.permissions import Permission
from tasker.server.auth.gate import OPERATES, REQUIRED
from tasker.server.web.pages import SUBJECTS
from tasker.server.web.site import FOLDER, SECTIONS
from tests.integration.web.conftest import Site, offered

ROUTES = [route for subject in SUBJECTS for route in subject.routes.routes if isinstance(route, APIRoute)]
SIGNED = "/ui/decide/{link}"
"""Permits what its signature says."""
OPEN = {"/ui/sign-in", "/ui/sign-out", "/ui/help", "/ui/static/{given}/{name:path}", "/ui/{rest:path}", SIGNED}
UNKNOWN = "00000000-0000-7000-8000-000000000000"
ADDRESS = re.compile(r'(?:href|src|action)="([^"]+)"')


def test_every_page_names_its_permission_but_those_that_tell_nothing() -> None:
    without = {route.path for route in ROUTES if REQUIRED not in (route.openapi_extra or {})}
    assert without == OPEN


def test_what_changes_something_is_kept_with_who_asked_for_it() -> None:
    changing = [route for route in ROUTES if "POST" in route.methods and route.path not in OPEN]
    others = [route for route in changing if OPERATES not in (route.openapi_extra or {})]
    for route in others:
        permission = (route.openapi_extra or {})[REQUIRED]
        assert permission in {Permission.TEMPLATES_VALIDATE, Permission.TASKS_CREATE}, route.path


async def test_a_page_is_shown_with_its_permission_and_with_no_other(closed: Site) -> None:
    for section in SECTIONS:
        await closed.sign_in(f"but-{section.permission}")
        if section.path:
            assert (await closed.get(section.path)).status_code == 403, section.path
        await closed.sign_in(f"only-{section.permission}")
        answer = await closed.get(section.path)
        assert answer.status_code == 200, section.path
        shown = re.findall(r'<a href="/ui/?([\w-]*)" data-key', answer.text)
        assert shown == [each.path for each in SECTIONS if each.permission == section.permission]


async def test_who_has_not_signed_in_is_asked_to_and_comes_back_to_the_page(closed: Site) -> None:
    asked = await closed.get("tasks", status="error")
    assert asked.status_code == 303
    assert asked.headers["location"] == "/ui/sign-in?next=tasks%3Fstatus%3Derror"

    wrong = await closed.post("sign-in", credential="unknown", next="tasks?status=error")
    assert wrong.status_code == 401
    assert "tasks?status=error" in wrong.text
    empty = await closed.post("sign-in", credential=" ")
    assert empty.status_code == 400
    back = await closed.post("sign-in", follow=False, credential="everything", next="tasks?status=error")
    assert back.headers["location"] == "/ui/tasks?status=error"
    assert "Signed in as ada" in await closed.text("tasks", status="error")

    left = await closed.post("sign-out")
    assert left.url.path == "/ui/sign-in"
    assert (await closed.get("tasks")).status_code == 303


@pytest.mark.parametrize(
    "wanted", ["//evil.example", "https://evil.example", "\\\\evil.example", "/x\r\nSet-Cookie: a=b"]
)
async def test_signing_in_leads_to_no_other_site(closed: Site, wanted: str) -> None:
    answer = await closed.post("sign-in", follow=False, credential="everything", next=wanted)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/ui/")
    assert "a" not in closed.client.cookies


async def test_cookies_are_out_of_reach_of_scripts_and_of_other_sites(closed: Site) -> None:
    token = await closed.token()
    answer = await closed.client.post("/ui/sign-in", data={"form_token": token, "credential": "everything"})
    (session,) = (value for value in answer.headers.get_list("set-cookie") if value.startswith("tasker_session"))
    for word in ("HttpOnly", "SameSite=lax", "Path=/ui"):
        assert word in session
    assert "Secure" not in session
    forwarded = {"X-Forwarded-Proto": "https"}
    data = {"form_token": token, "credential": "everything"}
    encrypted = await closed.client.post("/ui/sign-in", data=data, headers=forwarded)
    assert "Secure" in encrypted.headers["set-cookie"]


async def test_a_form_that_was_not_opened_here_changes_nothing(closed: Site) -> None:
    await closed.sign_in("everything")
    token = await closed.token()
    assert (await closed.client.post("/ui/sign-out", data={"form_token": "x" * 43})).status_code == 403
    assert (await closed.client.post("/ui/sign-out", data={"form_token": "ü"})).status_code == 403
    assert (await closed.client.post("/ui/sign-out", data={})).status_code == 400
    from_elsewhere = {"Sec-Fetch-Site": "cross-site"}
    answer = await closed.client.post("/ui/sign-out", data={"form_token": token}, headers=from_elsewhere)
    assert answer.status_code == 403
    assert "not opened on this page" in answer.text
    closed.client.cookies.delete("tasker_form")
    assert (await closed.client.post("/ui/sign-out", data={"form_token": token})).status_code == 403
    assert "Signed in as ada" in await closed.text()


async def test_what_is_no_form_is_refused_on_a_page(site: Site) -> None:
    answer = await site.client.post("/ui/sign-out", json={"form_token": await site.token()})
    assert answer.status_code == 400
    assert "expected a form, got application/json" in answer.text


async def test_an_address_that_leads_nowhere_is_a_page_that_says_so(site: Site) -> None:
    answer = await site.get("nowhere/at/all")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "there is no page /ui/nowhere/at/all" in answer.text
    assert (await site.get("static/1/../../site.py")).status_code == 404
    assert (await site.client.get("/ui/static/1/%2e%2e/site.py")).status_code == 404
    assert (await site.client.get("/ui/static/1/..%2f..%2fsite.py")).status_code == 404


async def test_a_page_lets_the_browser_load_from_here_alone(site: Site) -> None:
    for section in SECTIONS:
        answer = await site.get(section.path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert " style=" not in answer.text
        assert not re.search(r"<script(?![^>]*( src=| type=\"application/json\"))", answer.text)
        assert not re.search(r"\son\w+=", answer.text)
        assert all(found.startswith(("/", "#")) for found in ADDRESS.findall(answer.text)), section.path


async def test_every_file_that_a_page_names_is_there_and_kept_by_browsers(site: Site) -> None:
    text = (await site.get()).text
    for address in {found for found in ADDRESS.findall(text) if "/static/" in found}:
        answer = await site.client.get(address)
        assert answer.status_code == 200, address
        assert "immutable" in answer.headers["cache-control"]
    old = re.sub(r"/static/\w+/", "/static/another/", "/ui/static/x/style.css")
    assert (await site.client.get(old)).headers["cache-control"] == "no-cache"
    assert (FOLDER / "style.css").is_file()


async def test_behind_a_proxy_every_link_has_its_path(app: tasker.App) -> None:
    async with offered(app, root_path="/tasker") as site:
        answer = await site.get()
        links = ADDRESS.findall(answer.text)
        assert [link for link in links if not link.startswith(("/tasker/ui", "#"))] == []
        cookie = answer.headers["set-cookie"]
        assert "Path=/tasker/ui" in cookie


async def test_without_scripts_the_keys_are_a_page(site: Site, closed: Site) -> None:
    assert "search tasks" in await site.text("help")
    assert "<kbd>t</kbd>" in await site.text("help")
    assert "<kbd>t</kbd>" not in await closed.text("help")
    await closed.sign_in("only-tasks:list")
    assert "<kbd>t</kbd>" in await closed.text("help")


async def test_a_server_without_the_pages_has_none(app: tasker.App) -> None:
    from tasker.server.application import application

    transport = httpx.ASGITransport(app=application(app))
    async with httpx.AsyncClient(transport=transport, base_url="http://tasker.test") as client:
        assert (await client.get("/ui")).status_code == 404


async def test_a_link_to_a_name_with_any_characters_leads_to_it(app: tasker.App) -> None:
    name = "a b?c=d#e%"
    async with offered(app) as site:
        answer = await site.post(f"events/subscribers/{quote(name, safe='')}/replay", after="0")
        assert "no subscriber" in answer.text
        assert "a b?c=d#e%" in unescape(answer.text)
