"""A process that freezes while the server works for it: its session is ended, and others get what it held."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tasker
from tasker.db.connection import Connection
from tasker.db.sql_files import query
from tests.support.engine_fixture import Lab
from tests.support.random_plans import Spec
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]
LARGE = {"text": "x" * 3_000_000}
"""As a context. Five of them are more than sockets hold for a client that does not read."""


@pytest.fixture
def lab(database_url: str) -> Iterator[Lab]:
    opened = Lab(database_url)
    yield opened
    opened.close()


@contextmanager
def frozen(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A client that has stopped itself; at the end it is killed unless it has ended."""
    command = [sys.executable, "-m", "tests.support.fleets.frozen_client", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    status = Path(f"/proc/{process.pid}/stat")
    try:
        until(lambda: status.read_text().rpartition(")")[2].split()[0] == "T", "the client has stopped itself")
        yield process
    finally:
        process.kill()
        process.communicate()


def waits_for_client(lab: Lab) -> bool:
    return "ClientWrite" in claiming(lab)


def claiming(lab: Lab) -> list[str]:
    """What each session that claims waits for."""
    query = """select wait_event from pg_stat_activity
      where application_name = 'tasker claim' and datname = current_database()"""
    return [row.wait_event for row in lab.observer.rows(query)]


def claim_of(lab: Lab) -> str:
    """The call of a worker that takes five tasks with large contexts."""
    plan = lab.plan(Spec("a"))
    lab.submit(plan, *({"context": LARGE} for _ in range(5)))
    return json.dumps(lab.one.args(slots=100))


async def test_a_sweep_ends_the_session_of_a_worker_frozen_in_its_claim(lab: Lab) -> None:
    with frozen(lab.url, "claim", claim_of(lab)):
        until(lambda: waits_for_client(lab), "the server waits for the client")
        assert lab.two.claim() == [], "its transaction is open, so nobody else gets the steps"
        hasty = Connection(lab.url, settings="-c statement_timeout=1s")
        ended = [await hasty.execute(query("database", "end_frozen"), {})]
        while ended[-1] == [(0,)]:
            ended.append(await hasty.execute(query("database", "end_frozen"), {}))
        await hasty.close()
        assert ended[-1] == [(1,)]
        until(lambda: not claiming(lab), "the session has ended")

        assert len(lab.two.claim()) == 5


def test_a_client_that_reads_nothing_for_too_long_is_cut_off_by_the_network(lab: Lab) -> None:
    """No sweep runs here: `tcp_user_timeout` of the session is enough, where there is TCP."""
    if "host=" in lab.url:
        pytest.skip("the embedded server is reached without TCP")
    hasty = f"{lab.url}?options=-c%20tcp_user_timeout%3D500"
    with frozen(hasty, "claim", claim_of(lab)):
        until(lambda: waits_for_client(lab), "the server waits for the client")
        until(lambda: not claiming(lab), "the session has ended")

        assert len(lab.two.claim()) == 5


def test_a_program_frozen_in_its_own_transaction_holds_up_nobody(database_url: str) -> None:
    """Not even by being the first to submit in its namespace, which makes the queue."""
    with tasker.SyncApp(database_url) as app, frozen(database_url, "submit") as process:
        reports = [app.run("tests/chaos/workflow", {"seconds": 0.0, "n": n}, timeout=60) for n in range(20)]
        assert {report.status for report in reports} == {"complete"}
        assert process.stdout is not None
        late = process.stdout.readline().strip()
        process.send_signal(signal.SIGCONT)

        assert process.wait(60) == 0
        assert app.wait(late, timeout=60).status == "complete"
