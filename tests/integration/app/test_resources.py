"""Handlers use the resources of their worker; no secret of one reaches a row, a log line or an answer."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest

import tasker
from tasker.errors import ResourceMissing
from tests.support.command_line import invoke, write_workflow

CANARIES = {"env": "canary-env-4711/ü", "file": "canary-file-0815+x", "field": 'canary-"field"-2342'}
CONFIGURATION = """
[resources.bank]
kind = "python"
make = "bank_clients:Bank"
first = {{secret = "env:BANK_KEY"}}
second = {{secret = "file:{folder}/token"}}
third = {{secret = "file:{folder}/login#password"}}
"""
CLIENTS = """
class Bank:
    def __init__(self, first, second, third):
        self.keys = [first.reveal(), second.reveal(), third.reveal()]
        print("opened with", self.keys)

    def close(self):
        print("bank closed")
"""
MISUSES = """
import asyncio
import base64
import json
import logging
import sys
from tasker.errors import PermanentError
from tasker.domain_events import publish_domain_event
from tasker.step_handler import again_in, checkpoint_yield, step_handler, uses

HIDDEN = {}


def misuse(name):
    def decorate(function):
        HIDDEN[name] = function
        return step_handler(name)(uses(bank="bank")(function))
    return decorate


@misuse("result")
def result(bank):
    return {"rows": [{"ok": 1}, {"key": bank.keys[0]}]}


@misuse("nested")
def nested(bank):
    return {"text": json.dumps({"inside": bank.keys[2]})}


@misuse("encoded")
async def encoded(bank):
    return {"basic": base64.b64encode(f"app:{bank.keys[1]}".encode()).decode()}


@misuse("raised")
def raised(bank):
    raise PermanentError(f"refused {bank.keys}", metadata={"sent": bank.keys}, error_code=bank.keys[1])


@misuse("crashed")
async def crashed(bank):
    raise RuntimeError(*bank.keys)


@misuse("logged")
def logged(context, bank):
    context.log.error(f"uses {bank.keys[0]}", key=bank.keys[1], all={"keys": bank.keys})
    logging.getLogger("shop").warning("uses %s", bank.keys)
    print(*bank.keys)
    context.report_progress(percent=10, message=f"with {bank.keys[2]}")
    publish_domain_event("used", {"key": bank.keys[0]})
    return {"logged": True}


@misuse("position")
def position(bank):
    checkpoint_yield({"after": bank.keys[0]}, 1)


@misuse("asleep")
def asleep(context, bank):
    again_in("1h", reason=f"waits for {bank.keys[1]}")


@step_handler("fine")
@uses(bank="bank")
def fine(bank):
    return {"keys": len(bank.keys)}
"""
NAMES = ("result", "nested", "encoded", "raised", "crashed", "logged", "position", "fine")


def template(mode: str | None) -> str:
    execution = f", execution: {{mode: {mode}}}" if mode else ""
    steps = "".join(
        f"  - {{name: {name}, handler: {name}, retry: {{retryable: false}}{execution}}}\n" for name in NAMES
    )
    return f"name: misuses\nnamespace: secrets\nversion: 1.0.0\nsteps:\n{steps}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workflow whose handlers misuse the secrets of their resource in every way."""
    write_workflow(tmp_path / "misuses", template(None), MISUSES)
    (tmp_path / "bank_clients.py").write_text(CLIENTS, encoding="utf-8")
    (tmp_path / "worker.toml").write_text(CONFIGURATION.format(folder=tmp_path), encoding="utf-8")
    (tmp_path / "token").write_text(CANARIES["file"], encoding="utf-8")
    (tmp_path / "login").write_text('{"password": "canary-\\"field\\"-2342"}', encoding="utf-8")
    return tmp_path


def run(folder: Path, url: str, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "DATABASE_URL": url,
        "BANK_KEY": CANARIES["env"],
        "TASKER_CONFIG_PATH": str(folder / "worker.toml"),
        "PYTHONPATH": str(folder),
        "TASKER_LOG_FORMAT": "json",
        "TASKER_LOG_LEVEL": "debug",
    }
    command = [sys.executable, "-m", "tasker", "run", str(folder / "misuses"), *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def rows_of(url: str) -> str:
    """Every row of every table, as text."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "select quote_ident(schemaname) || '.' || quote_ident(tablename) from pg_tables"
            " where schemaname not in ('pg_catalog', 'information_schema')"
        ).fetchall()
        rows = [connection.execute(f"select t::text from {table} t").fetchall() for (table,) in tables]  # type: ignore[call-overload]
    return "\n".join(row for table in rows for (row,) in table)


def leaks(text: str) -> list[str]:
    forms = {name: [value, value.replace('"', '\\"'), value.encode().hex()] for name, value in CANARIES.items()}
    for name, value in CANARIES.items():
        forms[name] += [base64.b64encode(value.encode()).decode(), value.encode("unicode_escape").decode()]
    forms["encoded"] = [base64.b64encode(f"app:{CANARIES['file']}".encode()).decode()]
    return [f"{name}: {line[:300]}" for name, each in forms.items() for line in text.splitlines() if _any(each, line)]


def _any(forms: list[str], line: str) -> bool:
    return any(form in line for form in forms)


@pytest.mark.parametrize("mode", [None, "process"])
def test_a_secret_is_found_nowhere(folder: Path, database_url: str, mode: str | None) -> None:
    (folder / "misuses" / "workflow.yaml").write_text(template(mode), encoding="utf-8")
    done = run(folder, database_url)
    assert "bank closed" in done.stdout + done.stderr
    assert leaks(done.stdout + done.stderr) == []
    stored = rows_of(database_url)
    assert leaks(stored) == []
    for words in ("result_holds_secret", "$.rows[1].key", "***REDACTED***"):
        assert words in stored
    (task,) = [row.task_uuid for row in listed(database_url)]
    shown = "".join(invoke("task", *command, task, database=database_url).output for command in (("show",), ("logs",)))
    assert leaks(shown) == []
    assert "uses ***REDACTED***" in shown
    assert states(database_url, task) == {
        **dict.fromkeys(("result", "nested", "encoded", "raised", "crashed", "position"), "error"),
        **dict.fromkeys(("logged", "fine"), "complete"),
    }


def listed(url: str) -> Any:
    with tasker.SyncApp(url, work=False) as app:
        return app.tasks.list()


def states(url: str, task: str) -> dict[str, str]:
    with tasker.SyncApp(url, work=False) as app:
        return {name: str(step.state) for name, step in app.tasks.report(task).steps.items()}


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
