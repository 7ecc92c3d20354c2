"""Webhooks of a real worker: events arrive signed, bad ones harm nobody, and commands tell and mend what failed."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

import tasker
from tasker.views.events import SubscriberStatus
from tasker_webhooks.signing import headers, new_secret
from tests.support.command_line import Running, invoke, write_workflow
from tests.support.scripted_server import Scripted, reply, scripted_server

TEMPLATE = """
name: shop
namespace_name: shop
version: 1.0.0
identity_strategy: always_unique
steps:
  - {name: pay, handler: pay, publishes_events: [{name: shop.paid}]}
"""
HANDLERS = """
from tasker.step_handler import step_handler

@step_handler("pay")
def pay():
    return {"paid": True}
"""
PLUGIN = """
[plugins]
enabled = ["webhooks"]

[plugins.webhooks]
plain_http = true
private_networks = ["127.0.0.2/32"]
attempts = 4
first_retry_seconds = 0.05
timeout_seconds = 1.0
"""
ENDPOINT = """
[[plugins.webhooks.endpoints]]
name = "{name}"
url = "{url}"
secrets = ["{secret}"]
"""
LIE = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\nhello"
TASKS = 1
"""With four attempts no endpoint rests, and a busy machine has time to take an event."""
ALLOWED = "127.0.0.2"


@pytest.fixture
def commands(database_url: str) -> Any:
    """`tasker webhook ...` on the worker's database: its exit code, and what it prints as JSON."""

    def ask(*arguments: str) -> tuple[int, Any]:
        database = None if arguments[0] == "test" else database_url
        done = invoke("webhook", *arguments, "--format", "json", database=database)
        return done.exit_code, json.loads(done.stdout)

    return ask


async def wait_for_endpoints(app: tasker.App, fits: Any) -> dict[str, SubscriberStatus]:
    async with asyncio.timeout(60):
        while True:
            found = {each.name.removeprefix("webhook:"): each for each in await app.domain_events.subscribers()}
            if fits(found):
                return found
            await asyncio.sleep(0.05)


def assert_signed(server: Scripted, secret: str) -> None:
    for request in server.heard:
        head, _, body = request.partition("\r\n\r\n")
        sent = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:])
        wanted = headers(sent["webhook-id"], int(sent["webhook-timestamp"]), body.encode(), [secret])
        assert f"webhook-signature: {wanted['webhook-signature']}" in head


@pytest.mark.slow
async def test_good_endpoints_get_every_event_and_bad_ones_wait_for_a_person(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: Any
) -> None:
    secret, workflow = new_secret(), write_workflow(tmp_path / "shop", TEMPLATE, HANDLERS)
    async with (
        scripted_server([reply(204, "")], ALLOWED) as good,
        scripted_server([LIE], ALLOWED) as liar,
        scripted_server([reply(200, "")]) as forbidden,
        scripted_server([reply(307, "", location=f"{forbidden.url}/inside")], ALLOWED) as redirecting,
    ):
        silent = socket.create_server((ALLOWED, 0))
        port = silent.getsockname()[1]
        urls = {"good": good.url, "liar": liar.url, "redirecting": redirecting.url}
        urls["silent"] = f"http://{ALLOWED}:{port}"
        tables = [ENDPOINT.format(name=name, url=url, secret=secret) for name, url in urls.items()]
        (tmp_path / "tasker.toml").write_text(PLUGIN + "".join(tables))
        monkeypatch.setenv("TASKER_CONFIG_PATH", str(tmp_path / "tasker.toml"))

        worker = Running.start("worker", workflow, "--database-url", database_url)
        try:
            async with tasker.App(database_url, work=False) as app:
                await wait_for_endpoints(
                    app, lambda found: len([each for each in found.values() if each.active]) == len(urls)
                )
                for _ in range(TASKS):
                    await app.run(workflow, timeout=30)
                bad = ("redirecting", "silent")
                await wait_for_endpoints(app, lambda found: all(found[each].given_up == TASKS for each in bad))
                events = [event.event_id for event in (await app.domain_events.page()).events]
                async with asyncio.timeout(60):
                    while min(len(good.heard), len(liar.heard)) < TASKS:
                        await asyncio.sleep(0.05)

                code, listed = await asyncio.to_thread(commands, "list")
                assert code == 0
                assert {each["name"]: (each["state"], each["given_up"]) for each in listed} == {
                    "good": ("on", 0), "liar": ("on", 0), "redirecting": ("on", TASKS), "silent": ("on", TASKS)
                }  # fmt: skip
                _, inside = await asyncio.to_thread(commands, "list", "redirecting")
                assert all("127.0.0.1, an address that is not public" in each["error"] for each in inside)
                assert (await asyncio.to_thread(commands, "test", "good"))[0] == 0
                assert (await asyncio.to_thread(commands, "test", "redirecting"))[0] == 1

                assert await asyncio.to_thread(commands, "disable", "silent", "--reason", "broken") == (
                    0, {"endpoint": "silent", "changed": True}
                )  # fmt: skip
                assert (await asyncio.to_thread(commands, "replay", "redirecting", inside[0]["event_id"]))[1][
                    "events"
                ] == 1
                _, listed = await asyncio.to_thread(commands, "list")
                assert [each["state"] for each in listed] == ["on", "on", "on", "stopped"]
            worker.signal(signal.SIGTERM)
            assert (await asyncio.to_thread(worker.end))[0] == 0
        finally:
            worker.process.kill()
            silent.close()

    told = await asyncio.to_thread(invoke, "actions", "--format", "json", database=database_url)
    actions = json.loads(told.stdout)
    assert len(actions) == 2, "the replay, and that one was disabled"
    assert {each["id"] for each in good.bodies() if each["type"] == "shop.paid"} == {*events}
    assert {each["id"] for each in liar.bodies()} == {*events}
    assert_signed(good, secret)
    assert forbidden.heard == []
