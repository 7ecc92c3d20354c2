"""`kill -HUP`: real processes read their configuration again, and say what has come of it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import tasker
from tasker.template import compile_text
from tests.support.fleets.fleet import Fleet
from tests.support.waiting import until

pytestmark = pytest.mark.slow
MODE = "[worker.event_systems.worker]\ndeployment_mode = '{}'\n"
MORE = "[worker.lease]\nlease_ms = 40000\n"


class Reloaded:
    """A process whose file is written anew and which is told so."""

    def __init__(self, fleet: Fleet, file: Path, name: str, *command: str) -> None:
        self._fleet, self._file, self._name = fleet, file, name
        self._times = 0
        self.write(MODE.format("Hybrid"))
        fleet.program(name, "-m", "tasker", *command)

    def write(self, text: str) -> None:
        self._file.write_text(text)

    def hang_up(self, expected: str) -> None:
        """Send SIGHUP, and wait until the log says so once more."""
        before = self.log.count(expected)
        self._fleet.signal(self._name, signal.SIGHUP)
        until(lambda: self.log.count(expected) > before, expected, show=lambda: self.log)

    def ready(self, expected: str, times: int = 1) -> None:
        until(lambda: self.log.count(expected) >= times, expected, show=lambda: self.log)

    @property
    def log(self) -> str:
        return self._fleet.log(self._name)


@pytest.fixture(autouse=True)
def every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of the processes has every line: that they listen is nothing that a person need hear."""
    monkeypatch.setenv("TASKER_LOG_LEVEL", "DEBUG")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "fleet.toml"
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(file))
    return file


def test_a_worker_takes_over_what_it_can_and_names_what_it_cannot(
    database_url: str, tmp_path: Path, file: Path
) -> None:
    fleet = Fleet(database_url, tmp_path)
    try:
        command = ("worker", "--namespace", "reloaded", "--database-url", database_url)
        worker = Reloaded(fleet, file, "worker", *command)
        worker.ready("listening")

        worker.write(MODE.format("PollingOnly"))
        worker.hang_up("configuration_reloaded changed=worker.event_systems.worker.deployment_mode\n")

        worker.write(MODE.format("Hybrid") + MORE)
        worker.hang_up("configuration_needs_restart changed=worker.lease.lease_ms\n")
        worker.ready("listening", times=2)

        worker.write(MODE.format("Sometimes"))
        worker.hang_up("configuration_not_reloaded what was in force stays in force: ")
        assert "Sometimes" in worker.log

        worker.write(MODE.format("Hybrid"))
        worker.hang_up("configuration_reloaded changed=nothing\n")
        assert worker.log.count("configuration_needs_restart") == 1, "the lease is again as it was at the start"

        fleet.signal("worker", signal.SIGTERM)
        until(lambda: fleet.ended("worker"), "it ends", show=lambda: worker.log)
        assert "Traceback" not in worker.log
    finally:
        fleet.stop()


def test_workers_of_one_command_are_told_together(database_url: str, tmp_path: Path, file: Path) -> None:
    fleet = Fleet(database_url, tmp_path)
    try:
        command = ("worker", "--namespace", "reloaded", "--processes", "2", "--database-url", database_url)
        workers = Reloaded(fleet, file, "workers", *command)
        workers.ready("listening", times=2)
        workers.write(MODE.format("PollingOnly"))
        workers.hang_up("configuration_reloaded changed=worker.event_systems.worker.deployment_mode\n")
        workers.ready("configuration_reloaded", times=2)
        assert "starting another" not in workers.log
    finally:
        fleet.stop()


def test_an_orchestrator_without_a_file_says_so_and_goes_on(database_url: str, tmp_path: Path) -> None:
    fleet = Fleet(database_url, tmp_path)
    try:
        fleet.orchestrator("orchestrator")
        until(lambda: "listening" in fleet.log("orchestrator"), "it is ready", show=lambda: fleet.log("orchestrator"))
        fleet.signal("orchestrator", signal.SIGHUP)
        said = "this process was started without a configuration file"
        until(lambda: said in fleet.log("orchestrator"), said, show=lambda: fleet.log("orchestrator"))
        assert not fleet.ended("orchestrator")
    finally:
        fleet.stop()


def test_a_process_that_waits_for_its_database_is_not_ended_by_a_reload(tmp_path: Path, file: Path) -> None:
    fleet = Fleet("postgresql://127.0.0.1:1/none", tmp_path)
    try:
        worker = Reloaded(
            fleet, file, "worker", "worker", "--namespace", "x", "--database-url", "postgresql://127.0.0.1:1/none"
        )
        worker.ready("127.0.0.1")
        lines = worker.log.count("\n")
        fleet.signal("worker", signal.SIGHUP)
        until(lambda: worker.log.count("\n") > lines, "it tries again", show=lambda: worker.log)
        assert not fleet.ended("worker")
    finally:
        fleet.stop()


RULES = "[worker.execution]\nerror_rules = ['reloaded never ConnectionError']\n"
FAILS = """{name: fails, namespace: reloaded, version: 1,
  steps: [{name: a, handler: fails, retry: {backoff: fixed, backoff_base_ms: 3600000, max_backoff_ms: 3600000}}]}"""
HANDLERS = """from tasker.step_handler import step_handler


@step_handler("fails")
def fails():
    raise ConnectionResetError("away")
"""


def test_a_worker_takes_over_which_errors_are_retried(database_url: str, tmp_path: Path, file: Path) -> None:
    handlers = tmp_path / "failing.py"
    handlers.write_text(HANDLERS)
    fleet = Fleet(database_url, tmp_path)
    try:
        command = ("worker", "--namespace", "reloaded", "--handlers", str(handlers), "--database-url", database_url)
        worker = Reloaded(fleet, file, "worker", *command)
        worker.ready("listening")
        (plan,) = compile_text(FAILS).plans
        with tasker.SyncApp(database_url, work=False) as app:
            before = app.submit(plan, {"n": 1}).task_uuid
            until(lambda: app.tasks.report(before).status == "waiting_for_retry", "it waits for its retry")

            worker.write(
                MODE.format("Hybrid") + "[worker.execution]\nerror_rules = ['reloaded never ConnectionError']\n"
            )
            worker.hang_up("configuration_reloaded changed=worker.execution.error_rules\n")
            after = app.wait(app.submit(plan, {"n": 2}).task_uuid, timeout=60)

            assert after.status == "error"
            assert app.tasks.report(before).status == "waiting_for_retry"
    finally:
        fleet.stop()
