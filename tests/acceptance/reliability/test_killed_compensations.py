"""`kill -9` of a worker while it begins or continues a compensation: another one undoes the rest, each effect once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import invoke
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.holding import drop_writes, held, waiting
from tests.support.fleets.oracle import Oracle
from tests.support.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.servers,
    pytest.mark.parametrize("server", ["embedded"], indirect=True),
]
SAGA = Path(__file__).parents[3] / "workflows" / "order_saga"
STEPS = "select name, state, attempts from tasker.workflow_steps order by workflow_step_uuid"


@pytest.mark.parametrize(
    ("table", "end"),
    [
        ("tasker.dynamic_edges", "is_carried_out"),  # the write that begins the compensation
        ("tasker.dynamic_edges", "is_dropped"),
        ("tasker.step_results", "is_carried_out"),  # that of the result of a compensation
        ("tasker.step_results", "is_dropped"),
    ],
)
def test_compensation_of_a_killed_worker_is_carried_on(
    database_url: str, fleet: Fleet, oracle: Oracle, table: str, end: str
) -> None:
    invoke("template", "register", str(SAGA), database=database_url)
    invoke(
        *("task", "submit", "order_saga/order_saga", "--input"),
        '{"trip": "T-17", "customer": "Ada", "full": ["car"]}',
        database=database_url,
    )
    if table == "tasker.step_results":  # the compensation has begun, and nobody works
        fleet.worker("first", str(SAGA), "--concurrency", "1", lease=1)
        with held(database_url, "tasker.dynamic_edges"):
            until(lambda: bool(waiting(oracle, "tasker.dynamic_edges")), "it begins", show=lambda: fleet.log("first"))
            fleet.kill("first")
        until(lambda: oracle.value("select count(*) from tasker.tasks where phase = 'c'") == 1, "it has begun")
    with held(database_url, table):
        fleet.worker("doomed", str(SAGA), "--concurrency", "1", lease=1)
        until(lambda: bool(waiting(oracle, table)), "the write is held", show=lambda: fleet.log("doomed"))
        pids = waiting(oracle, table)
        fleet.kill("doomed")
        if end == "is_dropped":
            drop_writes(oracle, pids)
    until(lambda: oracle.is_given_up(fleet.processes["doomed"].pid), "the worker is given up")

    fleet.worker("another", str(SAGA), lease=1)
    until(lambda: oracle.finished() == 1, "the task has ended", show=lambda: fleet.log("another"))

    assert oracle.rows("select state, outcome, phase::text from tasker.tasks") == [("error", "compensated", "f")]
    assert [row[:2] for row in oracle.rows(STEPS)] == [
        *(("flight", "complete"), ("hotel", "complete"), ("car", "error"), ("confirm", "pending")),
        *(("hotel.undo", "complete"), ("flight.undo", "complete"), ("report", "complete")),
    ]
    oracle.check_promises()
