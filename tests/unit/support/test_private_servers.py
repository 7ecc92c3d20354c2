"""Private servers end with the tests that started them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tasker.db.embedded.watch import is_running
from tests.support.servers.brokers import Kind, PrivateServer
from tests.support.waiting import until

STARTS = f"""
from {__name__} import start
server = start()
print(server.pid, server._folder, flush=True)
input()
"""


def _launch(program: str, port: int, folder: Path) -> tuple[list[str], dict[str, str]]:
    return [program, "-m", "http.server", str(port), "--bind", "127.0.0.1"], {}


SERVER = Kind("HTTP", "", 1, "", "http://127.0.0.1:{port}", b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1", _launch)


def start() -> PrivateServer:
    server = PrivateServer(SERVER, sys.executable)
    server.start()
    return server


def test_a_server_ends_with_a_test_run_that_is_killed_and_leaves_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", STARTS], stdin=-1, stdout=-1, text=True) as run:
        assert run.stdout is not None
        pid, folder = run.stdout.readline().split()
        assert is_running(int(pid))
        run.kill()

    until(lambda: not is_running(int(pid)) and not Path(folder).exists(), "it has ended")


def test_a_server_that_is_killed_and_started_again_keeps_its_data_and_its_watcher_leaves_it_alone() -> None:
    server = start()
    try:
        kept = server._folder / "data.txt"
        kept.write_text("kept")
        before = server.pid
        server.restart()
        assert kept.read_text() == "kept"
        assert not is_running(before)
        assert is_running(server.pid)
    finally:
        server.remove()
    assert not kept.parent.exists()
