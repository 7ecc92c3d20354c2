"""`tasker server` as a process: it starts, answers, survives what it can, and stops in order."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.integration.db.test_connection import free_port
from tests.support.command_line import invoke
from tests.support.fleets.swallowing import relay
from tests.support.servers.plain_http import PLAIN
from tests.support.waiting import LOOK_SECONDS, until

CI = ("--name", "ci", "--permissions", "tasks:create")
CONFIGURATION = """
[orchestration.web.auth]
enabled = true
jwt_public_key_path = "{folder}/jwt-public-key.pem"
api_keys_enabled = true
[[orchestration.web.auth.api_keys]]
name = "ci"
key = "{digest}"
permissions = ["tasks:create"]
"""
TASKER = [sys.executable, "-m", "tasker"]


@contextmanager
def server(folder: Path, url: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], str, list[int]]]:
    """A running server: its process, its URL, the numbers of those that answer."""
    log = folder / "server.log"
    with log.open("w") as out:
        environment = {**os.environ, "DATABASE_URL": url}
        started = subprocess.Popen(
            [*TASKER, "server", "--port", "0", *options], stderr=out, cwd=folder, env=environment, text=True
        )
    wanted = int(options[options.index("--workers") + 1]) if "--workers" in options else 1

    def lines() -> list[tuple[str, str]]:
        return re.findall(r"server (\d+) listens on (\S+)", log.read_text())

    until(lambda: len(lines()) >= wanted or started.poll() is not None, "the server listens", show=log.read_text)
    assert started.poll() is None, log.read_text()
    yield started, lines()[0][1], [int(number) for number, _ in lines()]
    if started.poll() is None:
        started.send_signal(signal.SIGTERM)
        assert started.wait(60) == 0, log.read_text()


@pytest.mark.slow
def test_it_answers_and_ends_streams_in_order_when_it_is_stopped(database_url: str, tmp_path: Path) -> None:
    template = "name: waiting\nnamespace: nobody\nversion: 1.0.0\nsteps: [{name: never, handler: nobody.never}]\n"
    with server(tmp_path, database_url) as (process, address, _), httpx.Client(base_url=address) as client:
        assert client.get("/ready").status_code == 200
        assert client.post("/v1/templates", json={"yaml": template}).status_code == 201
        task = client.post("/v1/tasks", json={"namespace": "nobody", "name": "waiting"}).json()["task_uuid"]
        with client.stream("GET", f"/v1/tasks/{task}/events") as answer:
            lines = answer.iter_lines()
            assert next(lines) == "retry: 1000"
            process.send_signal(signal.SIGTERM)
            assert "event: end" not in list(lines)
        assert process.wait(60) == 0


@pytest.mark.slow
async def test_before_its_database_answers_it_lives_and_is_not_ready_and_becomes_ready_by_itself(
    database_url: str, tmp_path: Path
) -> None:
    address, log = f"http://127.0.0.1:{free_port()}", tmp_path / "server.log"
    async with relay(database_url) as network, httpx.AsyncClient(base_url=address) as client:
        network.passes.clear()  # connections are taken, and nothing is answered
        options = ("--port", address.rpartition(":")[2], "--database-url", network.url)
        with log.open("w") as out:
            process = await asyncio.create_subprocess_exec(*TASKER, "server", *options, stderr=out, cwd=tmp_path)
        try:
            await asyncio.to_thread(until, lambda: _listens(address), "it listens", show=log.read_text)
            assert (await client.get("/live")).json()["status"] == "alive"
            for path in ("/ready", "/v1/tasks", "/nowhere"):
                answer = await client.get(path)
                assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
                assert answer.headers["retry-after"] == "5"
            network.passes.set()
            while (answer := await client.get("/ready")).status_code == 503:
                await asyncio.sleep(LOOK_SECONDS)
            assert answer.status_code == 200
            assert (await client.get("/v1/tasks")).json()["tasks"] == []
        finally:
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0, log.read_text()


def _listens(address: str) -> bool:
    host, port = address.removeprefix("http://").split(":")
    with socket.socket() as tried:
        return tried.connect_ex((host, int(port))) == 0


@pytest.mark.slow
def test_of_several_processes_one_that_dies_is_replaced_and_the_address_stays(
    database_url: str, tmp_path: Path
) -> None:
    with server(tmp_path, database_url, "--workers", "2") as (_, address, numbers):
        os.kill(numbers[0], signal.SIGKILL)

        def replaced() -> bool:
            return (tmp_path / "server.log").read_text().count("listens on") == 3

        until(replaced, "another one listens", show=(tmp_path / "server.log").read_text)
        for _ in range(20):
            assert PLAIN.get(f"{address}/live").status_code == 200


@pytest.mark.slow
def test_usr1_makes_each_process_log_its_status_and_go_on(database_url: str, tmp_path: Path) -> None:
    with server(tmp_path, database_url, "--workers", "2") as (process, address, numbers):
        process.send_signal(signal.SIGUSR1)

        def lines() -> list[str]:
            return re.findall(r"process_status (.*)", (tmp_path / "server.log").read_text())

        until(lambda: len(lines()) >= 2, "both log their status", show=(tmp_path / "server.log").read_text)
        expected = [f"process=server pid={number} address={address} health=healthy" for number in numbers]
        assert sorted(lines()) == sorted(expected)
        assert PLAIN.get(f"{address}/live").status_code == 200
        assert process.poll() is None


@pytest.mark.slow
def test_several_processes_refuse_connections_from_the_stop_on_and_answer_what_is_under_way(
    database_url: str, tmp_path: Path
) -> None:
    fields = ("Host: localhost", "Content-Type: application/json", "Content-Length: 2")
    head = "\r\n".join(["POST /v1/templates HTTP/1.1", *fields, "", ""]).encode()
    with server(tmp_path, database_url, "--workers", "2") as (process, address, _):
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=60) as client:
            client.sendall(head + b"{")
            assert PLAIN.get(f"{address}/live").status_code == 200  # what came before has been read
            process.send_signal(signal.SIGTERM)
            until(lambda: not _listens(address), "connections are refused")
            assert process.poll() is None
            client.sendall(b"}")
            assert client.recv(100).startswith(b"HTTP/1.1 400 Bad Request")
        assert process.wait(60) == 0


@pytest.mark.slow
def test_each_process_asks_its_callers_who_they_are_where_that_is_configured(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert invoke("auth", "generate-keys", "--output-dir", tmp_path).exit_code == 0
    key = ["--private-key", tmp_path / "jwt-private-key.pem"]
    token = invoke("auth", "generate-token", *key, "--subject", "ada", "--permissions", "tasks:list").stdout.strip()
    made = json.loads(invoke("auth", "create-api-key", *CI, "--format", "json").stdout)
    (tmp_path / "tasker.toml").write_text(CONFIGURATION.format(folder=tmp_path, digest=made["configuration"]["key"]))
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(tmp_path / "tasker.toml"))
    shown = [{"Authorization": f"Bearer {token}"}, {"X-API-Key": made["api_key"]}]

    with server(tmp_path, database_url, "--workers", "2") as (_, address, _numbers):
        for _ in range(4):
            assert PLAIN.get(f"{address}/v1/tasks").status_code == 401
            assert [PLAIN.get(f"{address}/v1/tasks", headers=each).status_code for each in shown] == [200, 403]
        assert "for callers with tokens (RS256) and 1 API key" in (tmp_path / "server.log").read_text()


@pytest.mark.slow
def test_configured_bound_of_connections_counts_for_each_client(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tasker.toml").write_text("[orchestration.web]\nmax_connections_per_client = 2\n")
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(tmp_path / "tasker.toml"))
    with server(tmp_path, database_url) as (_, address, _numbers), ExitStack() as stack:
        host, port = address.removeprefix("http://").split(":")
        places = [(host, int(port))] * 3
        clients = [stack.enter_context(socket.create_connection(place, timeout=60)) for place in places]
        assert clients[2].recv(100).startswith(b"HTTP/1.1 429 ")
        for client in clients[:2]:
            client.sendall(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")


def test_an_address_that_other_machines_reach_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [*TASKER, "server", "--host", "0.0.0.0"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "authentication is off" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_dev_answers_beside_its_worker(database_url: str, tmp_path: Path) -> None:
    workflow = str(Path(__file__).parents[3] / "workflows" / "linear_math")
    log = tmp_path / "dev.log"
    environment = {**os.environ, "DATABASE_URL": database_url}
    with log.open("w") as out:
        process = subprocess.Popen(
            [*TASKER, "dev", workflow, "--port", "0"], stderr=out, cwd=tmp_path, env=environment, text=True
        )
    try:
        until(lambda: "listens on" in log.read_text() and "serves" in log.read_text(), "both serve", show=log.read_text)
        (address,) = re.findall(r"listens on (\S+)", log.read_text())
        (found,) = PLAIN.get(f"{address}/v1/templates").json()["templates"]
        assert found["name"] == "linear_workflow"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    with pytest.raises(httpx.ConnectError):
        PLAIN.get(f"{address}/live")
