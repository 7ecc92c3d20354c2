"""Steps of plugins run in a worker that enables them; no secret of a resource is found anywhere."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import tasker
from tests.support.command_line import invoke, write_workflow
from tests.support.scripted_server import reply, scripted_server

SECRETS = {name: f"canary-{name}-4711" for name in ("command", "files", "llm", "notify", "sql")}
CONFIGURATION = """
[plugins]
enabled = ["command", "files", "llm", "notify", "sql"]

[resources.tool]
kind = "command"
argv = ["{python}", "-c", "import os, sys; sys.stderr.write(os.environ['KEY']); print(sys.argv[1])", "{{word}}"]
arguments = {{word = {{type = "string"}}}}
environment = {{KEY = {{secret = "env:KEY_COMMAND"}}}}

[resources.folder]
kind = "files"
url = "file://{folder}/files"
writable = true
options = {{auto_mkdir = false}}

[resources.hook]
kind = "notify"
url = {{secret = "env:KEY_NOTIFY"}}
private_networks = ["127.0.0.0/8"]

[resources.model]
kind = "llm"
base_url = "{server}"
model = "small"
bearer = {{secret = "env:KEY_LLM"}}
private_networks = ["127.0.0.0/8"]

[resources.orders]
kind = "sql"
url = {{secret = "env:KEY_SQL"}}
"""
TEMPLATE = """
name: outside
namespace: steps
version: 1.0.0
defaults: {retry: {retryable: false}}
steps:
  - {name: write, handler: tasker.files.write, inputs: {resource: folder, path: a/b.txt, text: "${input.word}"}}
  - {name: read, handler: tasker.files.read, dependencies: [write], inputs: {resource: folder, path: a/b.txt}}
  - name: run
    handler: tasker.command
    dependencies: [read]
    inputs: {resource: tool, arguments: {word: "${steps.read.text}"}}
  - {name: send, handler: tasker.notify, inputs: {resource: hook, text: "${input.word}"}}
  - {name: ask, handler: tasker.llm, inputs: {resource: model, prompt: "${input.word}"}}
  - name: rows
    handler: tasker.sql
    inputs: {resource: orders, statement: "select :w as word", parameters: {w: "${input.word}"}}
"""


class Server:
    """A server in a thread of its own, which answers every request with what it was sent."""

    def __init__(self) -> None:
        self.url, self.heard = "", list[str]()
        self._started, self._ended = threading.Event(), asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))

    async def _serve(self) -> None:
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choice = {"message": {"content": f"refused {SECRETS['llm']}"}, "finish_reason": "stop"}
        answer = reply(200, {"model": "small", "choices": [choice], "usage": usage})
        async with scripted_server([answer]) as server:
            self.url, self.heard = server.url, server.heard
            self._started.set()
            await self._ended.wait()

    def __enter__(self) -> Server:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def server_of_services() -> Iterator[Server]:
    with Server() as server:
        yield server


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
    forms = [
        form
        for value in SECRETS.values()
        for form in (value, value.encode().hex(), base64.b64encode(value.encode()).decode().rstrip("="))
    ]
    return [line[:300] for line in text.splitlines() if any(form in line for form in forms)]


def test_steps_run_and_no_secret_is_found(tmp_path: Path, database_url: str, server_of_services: Server) -> None:
    write_workflow(tmp_path / "outside", TEMPLATE, "")
    (tmp_path / "outside" / "handlers.py").unlink()
    (tmp_path / "files").mkdir()
    base = server_of_services.url
    text = CONFIGURATION.format(python=sys.executable, folder=tmp_path, server=base)
    (tmp_path / "worker.toml").write_text(text, encoding="utf-8")
    environment = {
        **os.environ,
        "DATABASE_URL": database_url,
        "TASKER_CONFIG_PATH": str(tmp_path / "worker.toml"),
        "TASKER_LOG_LEVEL": "debug",
        "KEY_COMMAND": SECRETS["command"],
        "KEY_LLM": SECRETS["llm"],
        "KEY_NOTIFY": f"{base.replace('http', 'json')}/hook/{SECRETS['notify']}",
        "KEY_SQL": f"postgresql://nobody:{SECRETS['sql']}@127.0.0.1:9/orders",
    }
    command = [sys.executable, "-m", "tasker", "run", str(tmp_path / "outside"), "--input", '{"word": "a; $(id)"}']
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)
    assert leaks(done.stdout + done.stderr) == []
    stored = rows_of(database_url)
    assert leaks(stored) == []
    with tasker.SyncApp(database_url, work=False) as app:
        tasks = app.tasks.list()
        assert tasks, done.stdout + done.stderr
        task = tasks[0]
        report = app.tasks.report(task.task_uuid)
    states = {name: str(step.state) for name, step in report.steps.items()}
    complete = dict.fromkeys(("write", "read", "send"), "complete")
    assert states == {**complete, **dict.fromkeys(("run", "ask", "rows"), "error")}, report
    types = {name: report.steps[name].failures[-1]["error_type"] for name in ("run", "ask", "rows")}
    assert types == {"run": "result_holds_secret", "ask": "result_holds_secret", "rows": "retryable_error"}
    assert (tmp_path / "files" / "a" / "b.txt").read_text() == "a; $(id)"
    assert any(SECRETS["notify"] in request for request in server_of_services.heard)
    shown = "".join(
        invoke("task", action, task.task_uuid, database=database_url).output for action in ("show", "logs", "explain")
    )
    assert leaks(shown) == []


def test_worker_without_the_plugin_says_where_the_step_is(tmp_path: Path, database_url: str) -> None:
    write_workflow(tmp_path / "outside", TEMPLATE, "")
    result: Any = invoke("run", tmp_path / "outside", "--input", '{"word": "x"}', database=database_url)
    assert result.exit_code == 2
    assert 'pip install "tasker-engine[files]"' in result.output
    assert '[plugins] enabled = ["sql"]' in result.output
