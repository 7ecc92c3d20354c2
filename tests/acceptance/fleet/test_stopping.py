"""Processes end in time, whatever hangs, and what they held is run by others."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import tasker
from tests.support.fleets.fleet import Fleet
from tests.support.waiting import until

pytestmark = pytest.mark.slow

TEMPLATE = """
name: may_hang
namespace_name: stopping
version: "1.0.0"
steps:
  - {name: only, handler: stopping.work, retry: {max_attempts: 3, backoff: fixed, backoff_base_ms: 10}}
"""
HANDLERS = """
import asyncio, os, time
from tasker.handlers.decorators import step_handler

@step_handler("stopping.work")
async def work(context):
    while os.path.exists({hanging!r}):
        with open({started!r}, "w"):
            pass
        {wait}
    return {{"done": True}}
"""
ON_A_TERMINAL = "import os, runpy; os.setsid(); runpy.run_module('tasker', run_name='__main__', alter_sys=True)"
"""A group of its own for a command: signals go to all of it, as from a terminal."""
KEEPS_THE_LOCK = "import ctypes; ctypes.PyDLL(None).sleep(600)"
BLOCKS_THE_LOOP, WAITS = "time.sleep(600)", "await asyncio.sleep(600)"


@pytest.fixture
def fleet(database_url: str, tmp_path: Path) -> Iterator[Fleet]:
    running = Fleet(database_url, tmp_path)
    yield running
    running.stop()


def workflow(folder: Path, wait: str) -> Path:
    place = folder / "workflow"
    place.mkdir()
    (folder / "hanging").touch()
    (place / "workflow.yaml").write_text(TEMPLATE)
    code = HANDLERS.format(hanging=str(folder / "hanging"), started=str(folder / "started"), wait=wait)
    (place / "handlers.py").write_text(code)
    return place


def submit(url: str) -> str:
    async def create() -> str:
        async with tasker.App(url, work=False) as app:
            return (await app.submit("stopping/may_hang")).task_uuid

    return asyncio.run(create())


def attempts_of(url: str) -> tuple[str, int]:
    with psycopg.connect(url) as connection:
        row = connection.execute("select state, attempts from tasker.workflow_steps").fetchone()
        assert row is not None
        return str(row[0]), int(row[1])


def hang(fleet: Fleet, url: str, folder: Path, wait: str, limit: str) -> Path:
    """A worker in the middle of a step that does not end."""
    place = workflow(folder, wait)
    fleet.worker("one", str(place), "--shutdown-timeout", limit)
    submit(url)
    until(lambda: (folder / "started").exists(), "the step runs", show=lambda: fleet.log("one"))
    return place


def ended(fleet: Fleet, name: str) -> int:
    process = fleet.processes[name]
    until(lambda: process.poll() is not None, f"{name} has ended", show=lambda: fleet.log(name))
    return int(process.returncode)


def test_a_process_whose_loop_is_blocked_ends_at_the_limit_and_another_runs_its_step(
    fleet: Fleet, database_url: str, tmp_path: Path
) -> None:
    place = hang(fleet, database_url, tmp_path, BLOCKS_THE_LOOP, "1")
    fleet.signal("one", signal.SIGTERM)
    assert ended(fleet, "one") == 1
    log = fleet.log("one")
    assert "not stopped after 1 seconds" in log
    assert "handlers.py" in log, "the stack says where it hangs"
    (tmp_path / "hanging").unlink()
    fleet.worker("two", str(place))
    until(lambda: attempts_of(database_url)[0] == "complete", "another worker ran it", show=lambda: fleet.log("two"))


def test_a_process_whose_interpreter_stands_still_ends_and_says_where(
    fleet: Fleet, database_url: str, tmp_path: Path
) -> None:
    place = workflow(tmp_path, KEEPS_THE_LOCK)
    fleet.worker("one", str(place), "--shutdown-timeout", "1", lease=1)
    submit(database_url)
    assert ended(fleet, "one") == 1
    assert "Timeout (0:00:05)!" in fleet.log("one")
    assert "handlers.py" in fleet.log("one")


@pytest.mark.parametrize("command", ["worker", "dev"])
def test_a_worker_that_does_not_end_is_killed_by_the_command_that_started_it(
    fleet: Fleet, database_url: str, tmp_path: Path, command: str
) -> None:
    place = workflow(tmp_path, KEEPS_THE_LOCK)
    if command == "dev":
        fleet.dev("parent", str(place))
    else:
        fleet.worker("parent", str(place), "--processes", "2", "--shutdown-timeout", "1", lease=60)
    submit(database_url)
    until(lambda: (tmp_path / "started").exists(), "the step runs", show=lambda: fleet.log("parent"))
    fleet.signal("parent", signal.SIGTERM)
    assert ended(fleet, "parent") == (0 if command == "dev" else 9)
    assert "does not stop; killing it" in fleet.log("parent")


def test_a_step_in_flight_is_given_back_without_an_attempt(fleet: Fleet, database_url: str, tmp_path: Path) -> None:
    place = hang(fleet, database_url, tmp_path, WAITS, "2")
    fleet.signal("one", signal.SIGTERM)
    assert ended(fleet, "one") == 0, fleet.log("one")
    assert "waiting for 1 step, at most 1 seconds" in fleet.log("one")
    assert "A second signal ends the process at once" in fleet.log("one")
    assert "stopped; gave back 1 step\n" in fleet.log("one")
    assert attempts_of(database_url) == ("enqueued", 0)
    (tmp_path / "hanging").unlink()
    fleet.worker("two", str(place))
    until(lambda: attempts_of(database_url) == ("complete", 1), "another worker ran it", show=lambda: fleet.log("two"))


def test_a_second_signal_ends_it_at_once(fleet: Fleet, database_url: str, tmp_path: Path) -> None:
    hang(fleet, database_url, tmp_path, WAITS, "3000")
    fleet.signal("one", signal.SIGTERM)
    until(lambda: "stopping worker" in fleet.log("one"), "it stops", show=lambda: fleet.log("one"))
    fleet.signal("one", signal.SIGTERM)
    assert ended(fleet, "one") == 128 + signal.SIGTERM


def test_an_orchestrator_stops_at_the_first_signal(fleet: Fleet) -> None:
    fleet.orchestrator("one")
    fleet.signal("one", signal.SIGTERM)
    assert ended(fleet, "one") == 0


@pytest.mark.parametrize(
    ("command", "children"), [("worker --no-config --processes 2 --shutdown-timeout 2", 2), ("dev", 1)]
)
def test_ctrl_c_on_a_command_with_children_gives_their_steps_back_without_an_attempt(
    fleet: Fleet, database_url: str, tmp_path: Path, command: str, children: int
) -> None:
    place = workflow(tmp_path, WAITS)
    fleet.program("one", "-c", ON_A_TERMINAL, *command.split(), str(place), "--database-url", database_url)
    until(lambda: fleet.log("one").count("serves") == children, "all work", show=lambda: fleet.log("one"))
    submit(database_url)
    until(lambda: (tmp_path / "started").exists(), "the step runs", show=lambda: fleet.log("one"))
    os.killpg(fleet.processes["one"].pid, signal.SIGINT)
    assert ended(fleet, "one") == 0, fleet.log("one")
    assert attempts_of(database_url) == ("enqueued", 0)


def test_a_stop_while_a_dead_child_is_replaced_is_the_end(fleet: Fleet, tmp_path: Path) -> None:
    fleet.worker("one", str(workflow(tmp_path, WAITS)), "--processes", "2")
    children = Path(f"/proc/{fleet.processes['one'].pid}/task/{fleet.processes['one'].pid}/children")
    os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
    until(lambda: "starting another" in fleet.log("one"), "its death is seen", show=lambda: fleet.log("one"))
    fleet.signal("one", signal.SIGTERM)
    code = ended(fleet, "one")  # that of the dead child, unless another had taken its place already
    assert code in (0, signal.SIGKILL), fleet.log("one")
    assert fleet.log("one").count("starting another") == 1, fleet.log("one")


def test_a_mistake_ends_the_command_and_is_not_tried_again(database_url: str) -> None:
    command = [sys.executable, "-m", "tasker", "worker", "--no-config", "--namespace", "x", "--processes", "2"]
    done = subprocess.run(
        [*command, "--backend", "memory", "--database-url", database_url], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2, done.stderr
    assert "the memory backend lives inside one process" in done.stderr
    assert "starting another" not in done.stderr
