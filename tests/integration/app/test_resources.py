"""Handlers use the resources of their worker; a service that echoes credentials leaks none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import tasker
from tasker.errors import ResourceMissing
from tests.support.canaries import CANARIES, leaks, rows_of
from tests.support.command_line import write_workflow

ORDERS = """
name: orders
namespace: resources
version: 1.0.0
steps:
  - {name: count, handler: count, execution: {mode: MODE}}
  - {name: class, handler: by_class, dependencies: [count]}
"""
COUNT = """
from tasker.step_handler import StepHandler, step_handler, uses


@step_handler("count")
@uses(db="orders")
def count(db):
    return {"orders": db.count()}


class ByClass(StepHandler):
    handler_name = "by_class"
    uses = ("orders",)

    def call(self, context):
        return self.success({"orders": context.resource("orders").count()})
"""


class Orders:
    def count(self) -> int:
        return 3


def test_a_program_gives_its_handlers_a_client(database_url: str, tmp_path: Path) -> None:
    folder = write_workflow(tmp_path / "orders", ORDERS.replace("MODE", "thread"), COUNT)
    with tasker.SyncApp(database_url, resources={"orders": Orders()}) as app:
        report = app.run(folder, {}, timeout=60)
    assert report.results == {"count": {"orders": 3}, "class": {"orders": 3}}


def test_a_child_process_makes_its_own(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_workflow(tmp_path / "orders", ORDERS.replace("MODE", "process"), COUNT)
    table = {"kind": "python", "make": f"{__name__}:Orders"}
    with tasker.SyncApp(database_url, resources={"orders": table}) as app:
        assert app.run(folder, {}, timeout=60).succeeded


ON_THE_LOOP = """
from tasker.step_handler import step_handler, uses


@step_handler("count")
@uses(db="orders")
async def count(db):
    return {"orders": db.count()}
"""


def make_slowly() -> Orders:
    """As a provider of secrets that waits for a server: it must not block the event loop."""
    with pytest.raises(RuntimeError, match="no running event loop"):
        asyncio.get_running_loop()
    return Orders()


def test_client_of_an_async_handler_is_made_in_a_thread(database_url: str, tmp_path: Path) -> None:
    text = ORDERS.replace(", execution: {mode: MODE}", "").rpartition("  - {name: class")[0]
    folder = write_workflow(tmp_path / "orders", text, ON_THE_LOOP)
    table = {"kind": "python", "make": f"{__name__}:make_slowly"}
    with tasker.SyncApp(database_url, resources={"orders": table}) as app:
        assert app.run(folder, {}, timeout=60).results["count"] == {"orders": 3}


def test_missing_provider_after_a_refusal_leaves_the_failure_as_it_is(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The secret is read, the client is refused, and Vault does not answer when the secret is read again."""
    refused = ROTATED.replace('Path(os.environ["KEY_FILE"]).write_text(os.environ["NEXT_KEY"])', "os.remove(db.file)")
    text = ORDERS.replace("execution: {mode: MODE}", "retry: {max_attempts: 5, backoff_base_ms: 1}")
    folder = write_workflow(tmp_path / "orders", text.rpartition("  - {name: class")[0], refused)
    (tmp_path / "lost_clients.py").write_text(
        "class Client:\n    def __init__(self, key, file):\n        self.key, self.file = key.reveal(), file\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("tasker.secrets._content", read_or_fail)
    file = tmp_path / "key"
    file.write_text("first-key", encoding="utf-8")
    key = {"secret": f"file:{file}"}
    table = {"kind": "python", "make": "lost_clients:Client", "key": key, "file": str(file)}
    with tasker.SyncApp(database_url, resources={"orders": table}) as app:
        step = app.run(folder, {}, timeout=60).steps["count"]
    assert (step.attempts, step.failures[0]["error_type"]) == (1, "authentication_error")


def read_or_fail(path: Path, what: str) -> str:
    """As a provider that does not answer: an error that is not one of Tasker's."""
    return path.read_text(encoding="utf-8")


def test_a_missing_resource_is_an_error_before_the_run(database_url: str, tmp_path: Path) -> None:
    folder = write_workflow(tmp_path / "orders", ORDERS.replace("MODE", "thread"), COUNT)
    with tasker.SyncApp(database_url) as app, pytest.raises(ResourceMissing) as missing:
        app.run(folder, {}, timeout=60)
    assert "'count' (step 'count') uses the resource `orders`" in str(missing.value)
    assert "[resources.orders]" in (missing.value.hint or "")


ROTATED = """
import os
from pathlib import Path
from tasker.errors import AuthenticationError
from tasker.step_handler import step_handler, uses


class Client:
    def __init__(self, key):
        self.key = key.reveal()


@step_handler("count")
@uses(db="orders")
def count(db):
    if db.key != "second-key":
        Path(os.environ["KEY_FILE"]).write_text(os.environ["NEXT_KEY"])
        raise AuthenticationError("the password is wrong")
    return {"orders": 3}
"""


@pytest.mark.parametrize(("following", "attempts"), [("second-key", 2), ("first-key", 1)])
def test_refused_credentials_are_retried_only_if_they_have_changed(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, following: str, attempts: int
) -> None:
    text = ORDERS.replace("execution: {mode: MODE}", "retry: {max_attempts: 5, backoff_base_ms: 1}")
    folder = write_workflow(tmp_path / "orders", text.rpartition("  - {name: class")[0], ROTATED)
    key = tmp_path / "key"
    key.write_text("first-key", encoding="utf-8")
    monkeypatch.setenv("KEY_FILE", str(key))
    monkeypatch.setenv("NEXT_KEY", following)
    (tmp_path / f"clients_{attempts}.py").write_text(ROTATED, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    table = {"kind": "python", "make": f"clients_{attempts}:Client", "key": {"secret": f"file:{key}"}}
    with tasker.SyncApp(database_url, resources={"orders": table}) as app:
        report = app.run(folder, {}, timeout=60)
    step = report.steps["count"]
    assert (report.succeeded, step.attempts) == (attempts == 2, attempts)
    assert step.failures[0]["error_type"] == ("credentials_rotated" if attempts == 2 else "authentication_error")


ECHO = """
name: echo
namespace: secrets
version: 1.0.0
steps:
  - {name: ask, handler: tasker.http, inputs: {resource: bank, path: /PATH}}
"""


class Echo(BaseHTTPRequestHandler):
    """A service that shows its caller the credentials that it got."""

    def do_GET(self) -> None:
        body = f'{{"you": "{self.headers["authorization"]}"}}'.encode()
        self.send_response(200 if self.path == "/fine" else 422)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def echo() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Echo)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    serving.join()
    server.server_close()


@pytest.mark.parametrize(("path", "error"), [("fine", "result_holds_secret"), ("wrong", "permanent_error")])
def test_a_service_that_echoes_the_credentials_of_a_request_leaks_none(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, echo: str, path: str, error: str
) -> None:
    monkeypatch.setenv("BANK_KEY", CANARIES["file"])
    file = tmp_path / "echo.yaml"
    file.write_text(ECHO.replace("PATH", path), encoding="utf-8")
    table = {
        "kind": "http",
        "base_url": echo,
        "bearer": {"secret": "env:BANK_KEY"},
        "private_networks": ["127.0.0.0/8"],
    }
    with tasker.SyncApp(database_url, resources={"bank": table}) as app:
        (failure,) = app.run(file, {}, timeout=60).steps["ask"].failures
    assert failure["error_type"] == error
    assert leaks(str(failure) + rows_of(database_url)) == []
