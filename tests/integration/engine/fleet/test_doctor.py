"""What `tasker doctor` finds: each situation is made on the database."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import psycopg
import pytest

from tasker import App
from tasker.clock import new_uuid
from tasker.version import __version__
from tasker.views.fleet import CHECKS, DoctorFinding
from tests.integration.engine.fleet.conftest import Watched
from tests.support.command_line import invoke
from tests.support.engine_fixture import Lab, ok


@pytest.fixture
def working(watched: Watched) -> Watched:
    """One worker is at work, and a task has ended."""
    lab = watched.lab
    watched.at_work(lab.one, "w1", version=__version__)
    lab.submit(lab.chain(2))
    lab.one.run_all()
    return watched


def findings(lab: Lab) -> list[DoctorFinding]:
    async def use() -> list[DoctorFinding]:
        async with App(lab.url, work=False) as app:
            return await app.doctor.findings()

    return asyncio.run(use())


def only(lab: Lab, check: str) -> DoctorFinding:
    """What is found, which is of this check alone."""
    (found,) = findings(lab)
    assert found.check == check
    return found


def test_a_sound_fleet_has_no_findings_and_exit_code_0(working: Watched) -> None:
    result = invoke("doctor", database=working.lab.url)

    assert findings(working.lab) == []
    assert result.exit_code == 0
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [["✔", check] for check in CHECKS]


def test_a_process_of_another_release_is_named(working: Watched) -> None:
    working.at_work(working.lab.two, "old", version="0.0.9")

    found = only(working.lab, "versions")
    assert (found.what, list(found.examples)) == (
        f"1 of 2 processes run another release than this one, {__version__}",
        ["old on here: 0.0.9"],
    )


def test_a_clock_that_was_wrong_when_its_process_started_is_told(working: Watched) -> None:
    lab = working.lab
    lab.two.worker = new_uuid()
    lab.two.set_time(-90)
    working.at_work(lab.two, "w2", version=__version__, lease_ms=1_000_000)

    assert "the clock of worker w2 on here is 90 s ahead of the database's" in only(lab, "clocks").what


def test_a_clock_that_is_right_is_not(working: Watched) -> None:
    working.lab.two.worker = new_uuid()
    working.at_work(working.lab.two, "w2", version=__version__)

    assert findings(working.lab) == []


def test_workers_of_another_provider_see_none_of_the_messages(working: Watched) -> None:
    working.at_work(working.lab.two, "w2", version=__version__, backend="rabbitmq")

    found = only(working.lab, "settings")
    assert found.what == "1 of 2 processes use another messaging provider than pgmq"
    assert "tasker broker migrate" in found.fix


def test_more_slots_than_the_queue_takes_steps_never_get_full(working: Watched) -> None:
    working.at_work(working.lab.two, "w2", version=__version__, concurrency=5000)

    assert "have 5010 slots, but its queue holds only 2000" in only(working.lab, "settings").what


@pytest.mark.parametrize("finished", [False, True])
def test_a_broken_promise_is_found_in_open_tasks_and_in_the_newest_finished_ones(
    working: Watched, finished: bool
) -> None:
    lab = working.lab
    task = lab.submit_one(lab.chain(2))
    if finished:
        lab.one.run_all()
    lab.observer.execute("update tasker.tasks set failed = failed + 1 where task_uuid = %s", task)

    found = only(lab, "rows")
    assert (found.what, found.wrong) == ("counters differ from the rows: 1", True)
    assert found.examples[0].startswith(task)
    assert invoke("doctor", database=lab.url).exit_code == 1
    lab.observer.execute("update tasker.tasks set failed = failed - 1 where task_uuid = %s", task)


def test_steps_without_their_messages_are_told_and_mend_by_themselves(working: Watched) -> None:
    lab = working.lab
    lab.submit(lab.chain(1), {}, {})
    lab.lose_hints()
    lab.observer.execute("update tasker.workflow_steps set updated_at = now() - interval '1 minute'")

    found = only(lab, "queues")
    assert (found.what, found.wrong) == (f"enqueued in {lab.namespace}, without a message: 2", False)
    assert invoke("doctor", database=lab.url).exit_code == 0


@pytest.mark.parametrize("swept", [True, False])
def test_steps_of_a_lost_worker_are_wrong_where_nobody_sweeps(working: Watched, swept: bool) -> None:
    lab = working.lab
    lab.running(lab.chain(1))
    lab.observer.execute("update tasker.workers set lease_until = now() - interval '1 s'")
    if swept:
        working.at_work(lab.two, "w2", version=__version__)

    found = only(lab, "queues")
    assert (found.what, found.wrong) == ("in progress on a worker that is not alive: 1", not swept)


def test_parked_results_without_an_orchestrator_are_told(working: Watched) -> None:
    lab = working.lab
    _, claims = lab.running(lab.chain(1))
    lab.one.call("park", lab.one.args(items=[ok(claims["s0"])]))

    assert only(lab, "queues").what == "results wait for an orchestrator, but none is running"


def test_programs_read_the_findings_as_objects(working: Watched) -> None:
    working.at_work(working.lab.two, "old", version="0.0.9")

    found = json.loads(invoke("doctor", "--format", "json", database=working.lab.url).stdout)

    assert (found["wrong"], found["checks"]) == (True, list(CHECKS))
    assert {"check", "what", "fix", "wrong", "examples"} == set(found["findings"][0])


def test_more_connections_than_a_person_expects_are_told_and_are_no_error(
    working: Watched, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tasker.toml").write_text("[orchestration.web.database_pools]\nmax_total_connections_hint = 1\n")
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(tmp_path / "tasker.toml"))
    with psycopg.connect(working.lab.url, application_name="tasker worker"):
        result = invoke("doctor", database=working.lab.url)

    assert "connections to this database are Tasker's, and 1 are expected" in result.stdout
    assert "max_total_connections_hint" in result.stdout
    assert result.exit_code == 0
