"""What the files of `deploy/` start: migration, server, orchestrator and worker become ready, and end in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.integration.db.test_connection import free_port
from tests.support.command_line import invoke
from tests.support.deployed import DEPLOY, Deployed, of_compose, scaled_by
from tests.support.fleets.fleet import ROOT
from tests.support.servers.plain_http import PLAIN
from tests.support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.servers]
ANSWERING = ("server", "orchestrator", "worker")


class Site:
    """A machine with the secrets of one fleet, on which the services of `compose.yaml` run as plain processes."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self._folder = folder
        assert invoke("auth", "generate-keys", "--output-dir", folder).exit_code == 0
        (folder / "database_url").write_text(database_url + "\n")
        (folder / "workflows").symlink_to(ROOT / "workflows")
        self.ports = {name: free_port() for name in ANSWERING}
        self._environment = {
            **{key: value for key, value in os.environ.items() if key != "DATABASE_URL"},
            "TASKER_ENV": "production",
            "TASKER_CONFIG_PATH": str(DEPLOY / "tasker.toml"),
            "TASKER_JWT_PUBLIC_KEY_PATH": str(folder / "jwt-public-key.pem"),
            "TASKER_WEB_BIND_ADDRESS": f"127.0.0.1:{self.ports['server']}",
            "TASKER_WORKER_WEB_BIND_ADDRESS": "127.0.0.1:1",
        }

    def start(self, name: str, service: Deployed) -> subprocess.Popen[bytes]:
        words = [str(self.ports[name]) if word == str(service.port) else word for word in service.words]
        environment = {
            **self._environment,
            **service.environment,
            "DATABASE_URL_FILE": str(self._folder / "database_url"),
        }
        with (self._folder / f"{name}.log").open("wb") as log:
            command = [sys.executable, "-m", "tasker", *words]
            return subprocess.Popen(command, cwd=self._folder, env=environment, stdout=log, stderr=log)

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()

    def answer(self, name: str, path: str) -> int:
        """The status; 0 while nobody listens."""
        try:
            return PLAIN.get(f"http://127.0.0.1:{self.ports[name]}{path}").status_code
        except httpx.ConnectError:
            return 0


def test_what_compose_starts_becomes_ready_and_ends_within_its_grace(tmp_path: Path, empty_database_url: str) -> None:
    site, services = Site(tmp_path, empty_database_url), of_compose()
    assert site.start("migrate", services["migrate"]).wait(60) == 0, site.log("migrate")
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("select to_regclass('tasker.tasks') is not null").fetchone() == (True,)

    running = {name: site.start(name, services[name]) for name in ANSWERING}
    try:
        for name, process in running.items():

            def ready(name: str = name, process: subprocess.Popen[bytes] = process) -> bool:
                assert process.poll() is None, site.log(name)
                return all(site.answer(name, path) == 200 for path in ("/ready", "/live"))

            until(ready, f"{name} is ready", show=lambda name=name: site.log(name))
        assert site.answer("server", "/v1/tasks") == 401
        told = PLAIN.get(f"http://127.0.0.1:{site.ports['server']}/metrics").text
        assert all(f"# TYPE {name} " in told for name in scaled_by())
        for process in running.values():
            process.send_signal(signal.SIGTERM)
        for name, process in running.items():
            assert process.wait(services[name].grace_seconds) == 0, site.log(name)
    finally:
        for process in running.values():
            process.kill()
            process.wait()
