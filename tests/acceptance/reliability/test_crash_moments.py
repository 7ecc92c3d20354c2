"""`kill -9` of a process in the middle of a write: the database shows the moment, because a lock holds the write there.

Afterwards the database either carries the write out, and nobody hears of it, or drops it. Another process takes over.
"""

from __future__ import annotations

import pytest

from tests.support.fleets.fleet import Fleet
from tests.support.fleets.holding import drop_writes, held, waiting
from tests.support.fleets.mixture import SLOW
from tests.support.fleets.oracle import Oracle
from tests.support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("server", ["embedded"], indirect=True)]
TASKS = 2
PLACES = {
    "submit": "tasker.workflow_steps",
    "claim": "tasker.step_moves",
    "finish": "tasker.step_results",
    "park": "tasker.step_results",
    "end": "tasker.tasks",
}
"""The table at which each kind of write is held."""


def start(fleet: Fleet, url: str, write: str, name: str) -> None:
    """The process that makes this kind of write."""
    if write == "submit":
        fleet.program(name, "-m", "tests.support.fleets.submitting", url, "pgmq", str(TASKS), "0.0", "1", "--slow")
    elif write == "end":
        fleet.orchestrator(name)
    else:
        path = "queued" if write in ("park", "end") else "inline"
        fleet.worker(name, str(SLOW), "--result-path", path, "--concurrency", "1", lease=1)


def start_the_others(fleet: Fleet, write: str) -> None:
    """The processes that the tasks need beside it."""
    if write in ("submit", "end"):
        fleet.worker("worker", str(SLOW), "--result-path", "queued" if write == "end" else "inline")
    if write == "park":
        fleet.orchestrator("orchestrator")


@pytest.mark.parametrize(
    ("write", "end"),
    [
        pytest.param("submit", "is_carried_out", marks=pytest.mark.servers),
        ("claim", "is_carried_out"),
        pytest.param("finish", "is_carried_out", marks=pytest.mark.servers),
        ("finish", "is_dropped"),
        pytest.param("park", "is_carried_out", marks=pytest.mark.servers),
        pytest.param("end", "is_dropped", marks=pytest.mark.servers),
    ],
)
def test_a_process_that_is_killed_in_the_middle_of_a_write_is_made_up_for(
    database_url: str, fleet: Fleet, oracle: Oracle, write: str, end: str
) -> None:
    start_the_others(fleet, write)
    if write != "submit":
        start(fleet, database_url, "submit", "submitter")
        until(lambda: fleet.ended("submitter"), "the tasks are there")
    with held(database_url, PLACES[write]):
        start(fleet, database_url, write, "doomed")
        until(lambda: bool(waiting(oracle, PLACES[write])), "the write is held", show=lambda: fleet.log("doomed"))
        pids = waiting(oracle, PLACES[write])
        fleet.kill("doomed")
        if end == "is_dropped":
            drop_writes(oracle, pids)
    if write in ("claim", "finish", "park"):
        until(lambda: oracle.is_given_up(fleet.processes["doomed"].pid), "the worker is given up")

    start(fleet, database_url, write, "another")
    until(lambda: oracle.finished() == TASKS, "all tasks are final", show=lambda: fleet.log("another"))

    assert oracle.rows("select state, count(*) from tasker.tasks group by 1") == [("complete", TASKS)]
    oracle.check_promises()
    # each message at most: a task parks six results, for `flaky` parks its failure first
    oracle.check_repairs(hint_lost=TASKS if write == "claim" else 0, result_message_lost=oracle.parked())
    if write in ("park", "end"):
        at_work = "orchestrator" if write == "park" else "another"
        assert oracle.ended_from_the_queue() > 0, f"sweeps alone have ended the results: {fleet.log(at_work)}"
        assert not fleet.ended(at_work)
