"""Sessions of the pages: rows that end, whichever process answers, and no credential in a browser."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from hashlib import sha256
from typing import Any, LiteralString

import httpx
import jwt
import psycopg
import pytest

import tasker
from tasker.engine.process_registry import ProcessRegistry
from tasker.server.application import Options, application
from tasker.server.auth.authenticator import Authenticator
from tasker.server.auth.gate import ClosedGate
from tasker.server.auth.tokens import TokenOrder, sign
from tasker.server.auth.verification_keys import generate, private_key
from tasker.server.web.site import add_pages
from tasker.settings.http import ApiKeyEntry, Auth
from tests.integration.web.conftest import KEYS, Site, offered

COOKIE = "tasker_session"
PRIVATE, PUBLIC = generate(2048)
SETTINGS = Auth(enabled=True, api_keys_enabled=True, api_keys=KEYS, jwt_public_key=PUBLIC)


class Rows:
    """The rows of sessions, past the server."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def __call__(self, statement: LiteralString, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()

    def count(self) -> int:
        ((number,),) = self("select count(*) from tasker.page_sessions")
        return int(number)


@pytest.fixture
def rows(module_database_url: str, app: tasker.App) -> Iterator[Rows]:
    with psycopg.connect(module_database_url, autocommit=True) as connection:
        connection.execute("delete from tasker.page_sessions")
        yield Rows(connection)


@asynccontextmanager
async def guarded(app: tasker.App, settings: Auth = SETTINGS) -> AsyncIterator[tuple[Site, ClosedGate]]:
    """The pages of one process, and its gate, which a reload of the configuration changes."""
    gate = ClosedGate(Authenticator(settings))
    transport = httpx.ASGITransport(app=application(app, Options(pages=add_pages), gate))
    async with httpx.AsyncClient(transport=transport, base_url="http://tasker.test") as client:
        yield Site(client), gate


def token_for(hours: int, name: str = "grace") -> str:
    return sign(TokenOrder(name, ["tasks:list"], hours), private_key(PRIVATE, "key"), SETTINGS)


async def status_with(site: Site, identifier: str) -> int:
    """How a browser with this cookie is answered."""
    site.client.cookies.clear()
    answer = await site.client.get("/ui/tasks", headers={"cookie": f"{COOKIE}={identifier}"})
    if answer.status_code == 303:
        assert answer.headers["location"].startswith("/ui/sign-in")
    return answer.status_code


async def test_neither_the_cookie_nor_the_row_tells_the_key(closed: Site, rows: Rows) -> None:
    key = "only-tasks:list"
    await closed.sign_in(key)
    identifier = closed.client.cookies[COOKIE]

    assert re.fullmatch(r"[\w-]{43}", identifier)
    assert key.encode() not in base64.urlsafe_b64decode(f"{identifier}=")
    ((row, whole),) = rows("select s.session_hash, s::text from tasker.page_sessions s")
    assert row == sha256(identifier.encode()).digest()
    digest = sha256(key.encode())
    for secret in (key, identifier, digest.hexdigest(), key.encode().hex(), identifier.encode().hex()):
        assert secret not in whole


async def test_each_sign_in_is_a_session_of_its_own_and_ends_the_former(closed: Site, rows: Rows) -> None:
    await closed.sign_in("everything")
    first = closed.client.cookies[COOKIE]
    await closed.sign_in("only-tasks:list")
    second = closed.client.cookies[COOKIE]

    assert first != second
    assert rows.count() == 1
    assert "Signed in as only-tasks:list" in await closed.text("tasks")
    assert await status_with(closed, first) == 303
    assert await status_with(closed, second) == 200


async def test_a_session_that_somebody_else_chose_is_not_taken(closed: Site, rows: Rows) -> None:
    chosen = "x" * 43
    closed.client.cookies.set(COOKIE, chosen, domain="tasker.test", path="/ui")
    answer = await closed.post("sign-in", follow=False, credential="everything")
    assert COOKIE in answer.headers["set-cookie"]
    assert chosen not in answer.headers["set-cookie"]
    assert await status_with(closed, chosen) == 303


async def test_credential_is_checked_while_somebody_is_signed_in(closed: Site, rows: Rows) -> None:
    await closed.sign_in("everything")
    assert (await closed.post("sign-in", credential="unknown")).status_code == 401
    assert "Signed in as ada" in await closed.text("tasks")


async def test_a_copied_cookie_is_useless_after_sign_out(closed: Site, rows: Rows) -> None:
    await closed.sign_in("everything")
    copied = closed.client.cookies[COOKIE]
    left = await closed.post("sign-out", follow=False)

    assert f'{COOKIE}=""' in left.headers["set-cookie"]
    assert rows.count() == 0
    assert await status_with(closed, copied) == 303


async def test_every_process_knows_a_session_and_its_end(app: tasker.App, rows: Rows, module_database_url: str) -> None:
    async with (
        tasker.App(module_database_url, work=False) as second,
        guarded(app) as (one, _),
        guarded(second) as (other, _),
    ):
        await one.sign_in("everything")
        identifier = one.client.cookies[COOKIE]
        assert await status_with(other, identifier) == 200

        await one.post("sign-out")
        assert await status_with(other, identifier) == 303


async def test_a_session_that_is_over_is_refused_and_swept(app: tasker.App, closed: Site, rows: Rows) -> None:
    await closed.sign_in("everything")
    over = closed.client.cookies[COOKIE]
    rows("update tasker.page_sessions set expires_at = now() - interval '1 second' returning 1")
    closed.client.cookies.clear()
    await closed.sign_in("only-tasks:list")
    lasting = closed.client.cookies[COOKIE]
    assert await status_with(closed, over) == 303

    await ProcessRegistry(app._connection).forget(older_ms=1_000_000)

    assert rows("select session_hash from tasker.page_sessions") == [(sha256(lasting.encode()).digest(),)]
    assert await status_with(closed, lasting) == 200


async def test_a_session_lasts_twelve_hours_and_no_longer_than_its_token(app: tasker.App, rows: Rows) -> None:
    short = token_for(hours=2)
    ends = []
    async with guarded(app) as (site, _):
        for credential in ("everything", token_for(hours=24), short):
            assert (await site.sign_in(credential)).status_code == 200
            ((created, expires),) = rows("select created_at, expires_at from tasker.page_sessions")
            ends.append((expires - created, expires.timestamp()))
    assert [lasts for lasts, _ in ends[:2]] == [timedelta(hours=12)] * 2
    assert ends[2][1] == jwt.decode(short, options={"verify_signature": False})["exp"]


async def test_the_session_of_a_removed_key_ends_at_once(
    app: tasker.App, rows: Rows, caplog: pytest.LogCaptureFixture
) -> None:
    async with guarded(app) as (site, gate):
        await site.sign_in("everything")
        identifier = site.client.cookies[COOKIE]
        assert await status_with(site, identifier) == 200
        assert "credentials_refused" not in caplog.text
        left = tuple(key for key in KEYS if key.key != "everything")

        gate.change(Authenticator(SETTINGS.replace(api_keys=left)))

        assert await status_with(site, identifier) == 303
        (line,) = [message for message in caplog.messages if message.startswith("credentials_refused")]
        assert line.startswith("credentials_refused count=1")
        assert line.endswith("unknown API key")


async def test_the_session_of_a_token_ends_with_the_key_that_checks_it(app: tasker.App, rows: Rows) -> None:
    async with guarded(app) as (site, gate):
        await site.sign_in(token_for(2))
        identifier = site.client.cookies[COOKIE]
        assert await status_with(site, identifier) == 200
        gate.change(Authenticator(SETTINGS.replace(jwt_public_key=generate(2048)[1])))
        assert await status_with(site, identifier) == 303


async def test_a_session_has_the_permissions_that_its_key_has_now(app: tasker.App, rows: Rows) -> None:
    async with guarded(
        app, SETTINGS.replace(api_keys=(ApiKeyEntry(key="k" * 20, permissions=("tasks:list",), name="ada"),))
    ) as (site, gate):
        await site.sign_in("k" * 20)
        assert (await site.get("templates")).status_code == 403
        changed = ApiKeyEntry(key="k" * 20, permissions=("templates:read",), name="ada", namespaces=("shop",))
        gate.change(Authenticator(SETTINGS.replace(api_keys=(changed,))))
        listed = await site.text("templates")
        assert "orders" in listed
        assert "waiting" not in listed
        assert (await site.get("tasks")).status_code == 403


@pytest.mark.parametrize("cookie", ["", "x", "x" * 42, "x" * 43, base64.b64encode(b"everything").decode()])
async def test_a_cookie_that_is_no_session_asks_to_sign_in(closed: Site, rows: Rows, cookie: str) -> None:
    assert await status_with(closed, cookie) == 303


async def test_a_cookie_of_other_letters_asks_to_sign_in(closed: Site, rows: Rows) -> None:
    answer = await closed.client.get("/ui/tasks", headers=[(b"cookie", f"{COOKIE}={'ü' * 43}".encode("latin-1"))])
    assert answer.status_code == 303


async def test_who_shows_a_key_needs_no_session(closed: Site, rows: Rows) -> None:
    answer = await closed.client.get("/ui/tasks", headers={"X-API-Key": "everything"})
    assert answer.status_code == 200
    assert rows.count() == 0


async def test_sessions_are_asked_for_only_where_they_can_be(app: tasker.App, rows: Rows) -> None:
    """Once for a page, and not at all for files, without a cookie, or where nobody is asked who they are."""
    pool = app._connection.pool
    headers = {"cookie": f"{COOKIE}={'x' * 43}"}

    async def asked(site: Site, path: str, **headers: str) -> int:
        site.client.cookies.clear()
        before = pool.counts["acquires"]
        await site.client.get(f"/ui/{path}", headers=headers)
        return pool.counts["acquires"] - before

    async with offered(app) as opened, offered(app, closed=True) as closed:
        assert await asked(opened, "help", **headers) == 0
        assert (await opened.post("sign-in", credential="everything")).url.path == "/ui"
        assert await asked(closed, "help", **headers) == 1
        assert await asked(closed, "tasks", **headers) == 1
        assert await asked(closed, "static/x/style.css", **headers) == 0
        assert await asked(closed, "help", cookie=f"{COOKIE}=x") == 0
        assert await asked(closed, "help", **{**headers, "X-API-Key": "everything"}) == 0
        assert await asked(closed, "tasks") == 0
    assert rows.count() == 0
