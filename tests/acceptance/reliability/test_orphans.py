"""A process that started others is killed: they do not go on without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fleet import Fleet, is_gone
from tests.support.mixture import SLOW
from tests.support.oracle import Oracle
from tests.support.waiting import until


@pytest.fixture
def oracle(database_url: str) -> Iterator[Oracle]:
    judge = Oracle(database_url)
    yield judge
    judge.close()


@pytest.mark.parametrize("kind", ["dev", "worker"])
def test_workers_end_gracefully_when_the_command_that_started_them_is_killed(
    database_url: str, tmp_path: Path, oracle: Oracle, kind: str
) -> None:
    fleet = Fleet(database_url, tmp_path)
    try:
        if kind == "dev":
            fleet.dev("parent", str(SLOW))
        else:
            fleet.worker("parent", str(SLOW), "--processes", "2")
            until(lambda: oracle.value("select count(*) from tasker.workers") == 2, "both work")
        pids = [pid for (pid,) in oracle.rows("select pid from tasker.workers")]
        assert pids
        assert fleet.processes["parent"].pid not in pids

        fleet.kill("parent")

        until(lambda: all(map(is_gone, pids)), "they have ended", show=lambda: fleet.log("parent"))
        assert oracle.value("select count(*) from tasker.workers where stopped_at is null") == 0
    finally:
        fleet.stop()
