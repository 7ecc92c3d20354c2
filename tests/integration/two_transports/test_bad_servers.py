"""A command whose server is away, a stranger, or refuses: one line, what to do, the documented exit code."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tasker.app.sync_wrapper import LoopThread
from tasker.cli.main import cli
from tests.support.scripted_server import refusal, reply, scripted_server

HTML = reply(200, "<html>Welcome</html>", "text/html")
CUT = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n[{"task_uuid"'


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from tasker.client import Retries

    once = Retries(attempts=2, first_seconds=0, longest_seconds=0)
    monkeypatch.setattr("tasker.client.connection.Retries", lambda: once)


def tasker(url: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, env={"TASKER_URL": url})


@pytest.mark.parametrize(
    ("answer", "code", "says", "hint"),
    [
        (HTML, 1, "not a response of Tasker", "URL"),
        (reply(502, "<html>", "text/html"), 1, "502", "proxy"),
        (CUT, 1, "closed the connection", "try again"),
        (reply(200, [{"task": 1}]), 1, "unexpected response", "same release"),
        (refusal(401, "unauthorized", "no credentials"), 1, "no credentials", "tasker profile add"),
        (refusal(403, "forbidden", "tasks:list is missing", hint="ask ada"), 1, "tasks:list", "ask ada"),
        (refusal(429, "too_many_requests", "slow down", retry_after=600), 1, "slow down", None),
        (refusal(503, "overloaded", "too much waits", retry_after=600), 1, "too much waits", None),
        (refusal(404, "not_found", "Not Found"), 2, "Not Found", "another release"),
        (refusal(400, "usage_error", "no such state", hint="see help"), 2, "no such state", "see help"),
    ],
)
def test_a_bad_answer_is_one_line_and_what_to_do(answer: bytes, code: int, says: str, hint: str | None) -> None:
    loop = LoopThread("scripted")
    loop.start()
    server = scripted_server([answer])
    url = loop.wait(server.__aenter__()).url
    text, as_json = tasker(url, "task", "list"), tasker(url, "task", "list", "--format", "json")
    loop.wait(server.__aexit__(None, None, None))
    loop.stop()

    assert (text.exit_code, as_json.exit_code, text.stdout) == (code, code, "")
    lines = text.stderr.splitlines()
    assert says in lines[0]
    assert [line.startswith("Hint: ") for line in lines[1:]] == [True] * (hint is not None)
    assert hint is None or hint in lines[1]
    assert says in json.loads(as_json.stdout)["error"]["message"]


def test_a_check_of_a_profile_asks_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    loop = LoopThread("scripted")
    loop.start()
    server = scripted_server([refusal(503, "not_ready", "it starts")])
    script = loop.wait(server.__aenter__())
    assert CliRunner().invoke(cli, ["profile", "add", "here", "--url", script.url]).exit_code == 0
    check = CliRunner().invoke(cli, ["profile", "check", "here"])
    loop.wait(server.__aexit__(None, None, None))
    loop.stop()

    assert (check.exit_code, "it starts" in check.stderr, len(script.heard)) == (1, True, 1)


def test_where_nobody_listens_that_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for command in (["task", "list"], ["task", "cancel", "01900000"], ["top", "--once"], ["dlq", "stats"]):
        result = tasker(f"http://127.0.0.1:{port}", *command)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "cannot be reached" in result.stderr
        assert "Hint: check that the server runs" in result.stderr


@pytest.mark.parametrize("option", ["--url", "--profile"])
@pytest.mark.parametrize(
    ("command", "why", "where"),
    [
        ("db prune", "the privileges of the", "directly on the database: use --database-url or --data-dir"),
        ("broker migrate", "the credentials of both brokers", "directly on the database"),
        ("worker start", "it starts a process of the fleet", "directly on the database"),
        ("config show", "the settings of a server are at its /config", "runs here"),
    ],
)
def test_a_command_that_asks_no_server_says_why_and_what_it_works_on(
    command: str, why: str, where: str, option: str
) -> None:
    result = CliRunner().invoke(cli, [*command.split(), option, "http://127.0.0.1:9"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{command}` does not call a server" in result.stderr
    assert (why in result.stderr, where in result.stderr) == (True, True), result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("Error")]) == 1


def test_what_only_a_database_has_is_refused_with_a_server() -> None:
    result = tasker("http://127.0.0.1:9", "broker", "status", "--no-config")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "a server has its own configuration" in result.stderr
