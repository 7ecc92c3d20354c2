"""A process that started others is killed: they do not go on without it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fleets.fleet import Fleet, is_gone
from tests.support.fleets.mixture import SLOW
from tests.support.fleets.oracle import Oracle
from tests.support.waiting import until


@pytest.fixture
def oracle(database_url: str) -> Iterator[Oracle]:
    judge = Oracle(database_url)
    yield judge
    judge.close()


def start(fleet: Fleet, oracle: Oracle, kind: str) -> list[int]:
    """A command with workers of its own; their processes."""
    if kind == "dev":
        fleet.dev("parent", str(SLOW))
    else:
        fleet.worker("parent", str(SLOW), "--processes", "2")
    children = 1 if kind == "dev" else 2
    until(lambda: len(oracle.pids()) == children, "all work", show=lambda: fleet.log("parent"))
    return oracle.pids()


def shown_of(pid: int) -> str:
    """What `ps` shows of the process to everybody, and its environment."""
    return "".join(Path(f"/proc/{pid}/{name}").read_text() for name in ("cmdline", "environ"))


@pytest.mark.parametrize("kind", ["dev", "worker"])
def test_a_killed_worker_is_replaced_by_the_command_that_started_it_and_no_worker_shows_the_url(
    database_url: str, tmp_path: Path, oracle: Oracle, kind: str
) -> None:
    fleet = Fleet(database_url, tmp_path)
    try:
        pids = start(fleet, oracle, kind)
        os.kill(pids[0], signal.SIGKILL)
        until(lambda: bool({*oracle.pids()} - {*pids}), "another works", show=lambda: fleet.log("parent"))
        assert not any(database_url in shown_of(pid) for pid in {*oracle.pids()} - {pids[0]})
        assert fleet.processes["parent"].poll() is None
        assert ("restarting it" if kind == "dev" else "starting another") in fleet.log("parent")
    finally:
        fleet.stop()


@pytest.mark.parametrize("kind", ["dev", "worker"])
def test_workers_end_gracefully_when_the_command_that_started_them_is_killed(
    database_url: str, tmp_path: Path, oracle: Oracle, kind: str
) -> None:
    fleet = Fleet(database_url, tmp_path)
    try:
        pids = start(fleet, oracle, kind)
        assert fleet.processes["parent"].pid not in pids

        fleet.kill("parent")

        until(lambda: all(map(is_gone, pids)), "they have ended", show=lambda: fleet.log("parent"))
        assert oracle.value("select count(*) from tasker.workers where stopped_at is null") == 0
    finally:
        fleet.stop()
