"""`tasker.notify` sends one message to a target of the configuration; failures are classified, and tokens not shown."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tasker.errors import ConfigurationError, TaskerError
from tasker.known_secrets import KNOWN, KnownSecrets
from tasker.secrets import Secret
from tasker.testing.contexts import step_context
from tasker_steps.notify import Notify, make_notify
from tests.support.scripted_server import Reply, reply, scripted_server

LOCAL = ["127.0.0.0/8"]


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KnownSecrets.__slots__:
        monkeypatch.setattr(KNOWN, name, getattr(KnownSecrets(), name))


async def sent(*replies: Reply, networks: Any = LOCAL, path: str = "/hook", **inputs: Any) -> list[str]:
    """Send a message to a server and return the requests that it got."""
    async with scripted_server(replies or [reply(200, "ok")]) as server:
        resource = make_notify({"url": server.url.replace("http", "json") + path, "private_networks": networks})
        values = {"resource": "ops", "text": "hello", **inputs}
        result = await asyncio.to_thread(Notify().call, step_context(values, resources={"ops": resource}))
        assert result.result == {"sent": True}
        return server.heard


async def test_message_has_title_text_and_severity() -> None:
    (request,) = await sent(title="Größe", text="a\r\nb", severity="warning")
    body = json.loads(request.partition("\r\n\r\n")[2])
    assert (body["title"], body["message"], body["type"]) == ("Größe", "a\r\nb", "warning")


@pytest.mark.parametrize(
    ("answer", "retryable", "code"),
    [
        (reply(503, ""), True, "HTTP_503"),
        (reply(429, ""), True, "HTTP_429"),
        (reply(500, ""), True, "HTTP_500"),
        (reply(404, ""), False, "HTTP_404"),
        (reply(401, ""), False, "HTTP_401"),
        (None, True, "not_sent"),
        (reply(302, "", location="http://10.0.0.1/"), False, "address_refused"),
    ],
)
async def test_failures_are_classified(answer: Reply, retryable: bool, code: str) -> None:
    with pytest.raises(TaskerError) as failed:
        await sent(answer, path="/hook?redirect=yes")
    assert (failed.value.retryable, failed.value.error_code) == (retryable, code)


async def test_tokens_of_a_secret_url_are_redacted_one_by_one(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    make_notify({"url": Secret("json://user:passw0rd1@hooks.example.com/services/T0KEN-4711?token=q0-9876543")})
    shown = KNOWN.redact("passw0rd1 T0KEN-4711 q0-9876543 hooks.example.com services user")
    assert shown == "***REDACTED*** ***REDACTED*** ***REDACTED*** hooks.example.com services user"
    with pytest.raises(ConfigurationError) as refused:
        make_notify({"url": Secret("nosuch://t0ken-4711-abc/")})
    assert "4711" not in str(refused.value) + caplog.text


@pytest.mark.parametrize(
    ("settings", "message"),
    [({}, "URL of apprise"), ({"url": "x"}, "URL of apprise"), ({"url": "json://a", "urls": []}, "unknown key 'urls'")],
)
def test_mistake_of_the_configuration_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        make_notify(settings)
    assert message in refused.value.message
