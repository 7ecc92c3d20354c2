"""`tasker webhook` on the database and through a server: what is asked and done is the same, and what is printed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result
from fastapi.routing import APIRoute

import tasker
from tasker.app.configured import from_environment
from tasker.app.http_serving import options_of
from tasker.app.sync_wrapper import LoopThread
from tasker.cli.main import cli
from tasker.server.application import application
from tasker.server.auth.gate import REQUIRED
from tasker.server.sockets import HttpServer, listen
from tasker_webhooks.routes import endpoint_routes
from tasker_webhooks.signing import new_secret
from tasker_webhooks.table import WebhooksTable
from tests.support.scripted_server import reply, scripted_server

CONFIGURATION = """
[plugins]
enabled = ["webhooks"]

[plugins.webhooks]
plain_http = true
private_networks = ["127.0.0.0/8"]

[[plugins.webhooks.endpoints]]
name = "billing"
url = "{url}?key=hidden"
secrets = ["{secret}"]

[[plugins.webhooks.endpoints]]
name = "broken"
url = "{url}/broken"
secrets = ["{secret}"]
"""
GIVEN_UP = """insert into tasker.event_subscribers (name, position, updated_at)
values ('webhook:billing', 0, now());
insert into tasker.event_deliveries (subscriber, event_uuid, event, attempts, error, created_at, updated_at)
select 'webhook:billing', gen_random_uuid(), '{"event_name": "shop.paid"}', n, 'it answered 500', now(), now()
from generate_series(1, 2) n"""
SAME = (
    "webhook list",
    "webhook list --format json",
    "webhook list billing",
    "webhook list billing --format json",
    "webhook list nobody",
    "webhook replay nobody --format json",
    "webhook test nobody",
)


@dataclass
class Served:
    """A database, and a server in front of it; both with the same endpoints."""

    database: str
    url: str

    def invoke(self, place: str, command: str) -> Result:
        environment = {"DATABASE_URL": self.database, "TASKER_URL": self.url if place == "server" else ""}
        return CliRunner().invoke(cli, command.split(), env=environment)

    def told(self, place: str, command: str) -> tuple[int, str, str]:
        found = self.invoke(place, command)
        assert found.exception is None or isinstance(found.exception, SystemExit)
        return found.exit_code, found.stdout, found.stderr

    def actions(self) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database) as connection:
            asked = "select endpoint, path, status from tasker.operator_actions order by requested_at"
            return connection.execute(asked).fetchall()


@contextmanager
def receiver(*replies: bytes) -> Iterator[str]:
    """Run an endpoint in a thread of its own, and return its URL."""
    loop, server = LoopThread("receiver"), scripted_server(replies)
    loop.start()
    yield loop.wait(server.__aenter__()).url
    loop.wait(server.__aexit__(None, None, None))
    loop.stop()


@pytest.fixture
def served(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    loop = LoopThread("server")
    loop.start()
    file = tmp_path / "complete.toml"
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(file))
    with receiver(reply(200, ""), reply(500, "")) as url:
        file.write_text(CONFIGURATION.format(url=url, secret=new_secret()), encoding="utf-8")
        app = tasker.App(database_url, work=False)
        loop.wait(app.__aenter__())
        server = HttpServer(application(app, options_of(from_environment())), listen("127.0.0.1", 0), grace_seconds=5)
        loop.wait(server.start())
        yield Served(database_url, server.address)
        loop.wait(server.stop())
        loop.wait(app.__aexit__(None, None, None))
    loop.stop()


def test_both_transports_print_the_same(served: Served) -> None:
    with psycopg.connect(served.database) as connection:
        connection.execute(GIVEN_UP)
    for command in SAME:
        assert served.told("server", command) == served.told("database", command), command
    found = json.loads(served.invoke("server", "webhook list --format json").stdout)
    assert [(each["name"], each["state"], "hidden" in each["url"]) for each in found] == [
        ("billing", "on", False),
        ("broken", "new", False),
    ]


@pytest.mark.parametrize("place", ["database", "server"])
def test_an_endpoint_is_stopped_and_its_events_are_posted_again_and_it_is_kept_who_did_it(
    served: Served, place: str
) -> None:
    with psycopg.connect(served.database) as connection:
        connection.execute(GIVEN_UP)
    steps = [
        ("webhook disable billing --reason moving --format json", {"endpoint": "billing", "changed": True}),
        ("webhook disable billing --format json", {"endpoint": "billing", "changed": False}),
        ("webhook enable billing --format json", {"endpoint": "billing", "changed": True}),
        ("webhook enable billing --format json", {"endpoint": "billing", "changed": False}),
        ("webhook enable broken --format json", {"endpoint": "broken", "changed": False}),
        ("webhook replay billing --format json", {"endpoint": "billing", "events": 2}),
    ]
    for command, answer in steps:
        assert json.loads(served.invoke(place, command).stdout) == answer
        if "moving" in command:
            (stopped, _) = json.loads(served.invoke(place, "webhook list --format json").stdout)
            assert (stopped["state"], stopped["reason"].endswith(": moving")) == ("stopped", True)
    names = [command.split()[1] for command, _ in steps]
    below = "/plugins/webhooks/endpoints"
    endpoints = [command.split()[2] for command, _ in steps]
    calls = list(zip(names, endpoints, strict=True))
    there = [(f"POST {below}/{{name}}/{name}", f"{below}/{endpoint}/{name}", 200) for name, endpoint in calls]
    here = [(f"tasker webhook {name}", endpoint, 0) for name, endpoint in calls]
    assert served.actions() == (there if place == "server" else here)


@pytest.mark.parametrize("place", ["database", "server"])
def test_a_test_is_posted_from_where_the_command_works(served: Served, place: str) -> None:
    assert served.told(place, "webhook test billing")[:2] == (0, "billing accepted the test event\n")
    code, told, _ = served.told(place, "webhook test broken --format json")
    assert (code, json.loads(told)) == (1, {"endpoint": "broken", "taken": False, "error": "it answered 500"})


@pytest.mark.parametrize("location", ["http://[::1", "http://127.0.0.1:99999/", "http://a..b/"])
def test_malformed_redirect_fails_the_test_command_with_its_reason(served: Served, location: str) -> None:
    with receiver(reply(307, "", location=location)) as url:
        file = Path(os.environ["TASKER_CONFIG_PATH"])
        file.write_text(CONFIGURATION.format(url=url, secret=new_secret()), encoding="utf-8")
        code, told, _ = served.told("database", "webhook test billing --format json")
    assert (code, json.loads(told)["taken"]) == (1, False)
    assert json.loads(told)["error"].startswith("invalid ")


def test_a_server_without_the_plugin_says_what_is_missing(
    served: Served, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, app = LoopThread("bare server"), tasker.App(database_url, work=False)
    loop.start()
    loop.wait(app.__aenter__())
    server = HttpServer(application(app), listen("127.0.0.1", 0), grace_seconds=5)
    loop.wait(server.start())
    code, _, told = Served(database_url, server.address).told("server", "webhook list")
    loop.wait(server.stop())
    loop.wait(app.__aexit__(None, None, None))
    loop.stop()
    assert (code, "lack a plugin" in told) == (2, True)


def test_what_the_page_says_of_permissions_is_so() -> None:
    page = (Path(__file__).parents[3] / "docs" / "webhooks.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if re.match(r"\| `(GET|POST) /endpoints", line)]
    told = {name: row.split("`")[-2] for row in rows for name in re.findall(r"`(?:\S+ \S*/)?(\w+)`", row.split("|")[1])}
    routes = [route for route in endpoint_routes(WebhooksTable()).routes if isinstance(route, APIRoute)]
    assert {route.path.rpartition("/")[2]: (route.openapi_extra or {})[REQUIRED] for route in routes} == told
    assert len(told) == 6
