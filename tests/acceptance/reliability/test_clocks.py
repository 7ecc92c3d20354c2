"""Processes whose clocks are wrong: leases, deadlines, retries and delays follow the clock of the database."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from tests.support import clocks
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.freezing import busiest
from tests.support.fleets.mixture import SLOW
from tests.support.fleets.oracle import Oracle
from tests.support.waiting import until

AHEAD, BEHIND = "+3600", "-60"
TASKS = 8
LEASE = 4
"""In seconds: longer than a busy machine keeps a worker from renewing it."""

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("offset", "sign"), [(AHEAD, 1), (BEHIND, -1)])
def test_the_clock_of_such_a_process_is_wrong_and_its_timers_are_not(offset: str, sign: int) -> None:
    program = "import time; print(time.time(), time.monotonic())"
    found = subprocess.run(
        [sys.executable, "-c", program], env=clocks.wrong_by(offset), capture_output=True, text=True, check=True
    )
    wall, monotonic = map(float, found.stdout.split())

    assert sign * (wall - time.time()) > 30
    assert 0 <= time.monotonic() - monotonic < 30


@pytest.mark.servers
@pytest.mark.parametrize("server", ["embedded"], indirect=True)
def test_a_lease_a_delay_and_a_retry_follow_the_database_whatever_the_clocks_of_the_processes(
    database_url: str, new_fleet: Callable[..., Fleet], oracle: Oracle
) -> None:
    """A step runs longer than a lease: no worker is lost before one is killed, and then it is found."""
    fleet = new_fleet()
    fleet.worker("ahead", str(SLOW), "--concurrency", "8", lease=LEASE, environment=clocks.wrong_by(AHEAD))
    fleet.worker("behind", str(SLOW), "--concurrency", "8", lease=LEASE, environment=clocks.wrong_by(BEHIND))
    fleet.orchestrator("orchestrator", environment=clocks.wrong_by(BEHIND))
    submit = ("-m", "tests.support.fleets.submitting", database_url, "pgmq", str(TASKS), str(LEASE + 1), "1", "--slow")
    fleet.program("submitter", *submit)

    until(lambda: oracle.finished() > 0, "work is under way")
    assert (oracle.failures("worker_lost"), dict(+oracle.repairs())) == (0, {})
    fleet.kill(busiest(fleet, oracle))
    until(lambda: oracle.finished() == TASKS, "all tasks are final")

    assert oracle.rows("select distinct state from tasker.tasks") == [("complete",)], oracle.rows(
        "select distinct error from tasker.step_failures"
    )
    oracle.check_promises()
    oracle.check_repairs()
    assert oracle.failures("worker_lost") > 0
    assert oracle.rows(EARLY) == []
    assert oracle.rows(NOT_NOW) == []


EARLY = """select w.workflow_step_uuid, w.created_at, n.created_at from tasker.step_transition_log w
  join tasker.step_transition_log n on n.workflow_step_uuid = w.workflow_step_uuid
    and n.sort_key - (cardinality(string_to_array(n.path, '>')) - 1) = w.sort_key
  join tasker.workflow_steps s on s.workflow_step_uuid = w.workflow_step_uuid
  where split_part(w.path, '>', -1) = 'waiting_for_retry'
    and n.created_at < w.created_at + case s.name when 'flaky' then interval '20 ms' else interval '50 ms' end"""
"""Retries that began before their delay was over."""

NOT_NOW = """select created_at from (select created_at from tasker.step_transition_log union all
  select created_at from tasker.tasks union all select updated_at from tasker.workflow_steps) t
  where created_at not between now() - interval '30 minutes' and now()"""
"""Times in the database that come from another clock."""
