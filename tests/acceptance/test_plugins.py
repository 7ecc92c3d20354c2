"""Plugins in real processes on PostgreSQL: what they hear is in the rows, and what they raise harms nothing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import tasker
from tasker.orchestration.sweep import SweepSettings
from tasker.plugins.hooks import ASKED, Hooks
from tasker.services.submission.submit import Submission, SubmissionResult
from tasker.settings.execution import Sweep
from tasker.settings.listening import ReadinessTiming
from tests.support.fleets.fleet import ROOT, Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.strangers import install_plugin, write_distribution
from tests.support.waiting import until

pytestmark = pytest.mark.slow

DIAMOND = ROOT / "tests" / "chaos" / "workflow"
TASKS = 8
HEARS = """
import dataclasses, json, os
from tasker.plugins.hooks import hookimpl

def write(hook, value):
    with open(os.environ["HEARD"], "a") as file:
        for each in value if isinstance(value, tuple) else [value]:
            file.write(json.dumps([hook, os.getpid(), dataclasses.asdict(each)], default=str) + "\\n")
"""
HOOKS = [name for name in vars(Hooks) if name.startswith("tasker_")]
NOTED = [name for name in HOOKS if name not in ASKED]
MAKING = ("tasker_settings", "tasker_configured")
"""Without these a plugin is not there at all."""
ARGUMENTS = {name: vars(Hooks)[name].__code__.co_varnames[1] for name in NOTED}
HEARS += "".join(f"\n@hookimpl\ndef {hook}({name}): write({hook!r}, {name})\n" for hook, name in ARGUMENTS.items())


def doing(statement: str, hooks: Iterable[str]) -> str:
    """A plugin that does this in each of the hooks."""
    return "import time\nfrom tasker.plugins.hooks import hookimpl\n" + "".join(
        f"\n@hookimpl\ndef {hook}(): {statement}\n" for hook in hooks
    )


RAISES, SLEEPS = "raise RuntimeError('no')", "time.sleep(60)"
WORST = {
    "watcher": doing(RAISES, [hook for hook in HOOKS if hook not in (*MAKING, "tasker_write_committed")]),
    "blocker": doing(SLEEPS, NOTED),
    "dumb": doing(SLEEPS, [hook for hook in ASKED if hook not in MAKING]),
    **{hook.removeprefix("tasker_"): doing(RAISES, [hook]) for hook in MAKING},
}


def submit(url: str) -> list[str]:
    async def create() -> list[str]:
        async with tasker.App(url, work=False) as app:
            answers = await app.submit_many(DIAMOND, [Submission({"seconds": 0, "n": n}) for n in range(TASKS)])
            return [answer.task_uuid for answer in answers if isinstance(answer, SubmissionResult)]

    return asyncio.run(create())


def environment_with(folder: Path, source: str) -> dict[str, str]:
    """That of a process that finds this plugin, which writes what it hears to `folder/heard`."""
    root = write_distribution(folder, "watcher_dist", "tasker.plugins", "watcher", "watcher_plugin", source)
    paths = [str(root), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "HEARD": str(folder / "heard")}


def heard(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """What every process was told, by hook."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in (folder / "heard").read_text().splitlines():
        hook, _, value = json.loads(line)
        found.setdefault(hook, []).append(value)
    return found


def assert_as_in_the_rows(told: dict[str, list[dict[str, Any]]], oracle: Oracle) -> None:
    """Attempts, results, failures and ends of tasks, each counted once."""
    ends = Counter(each["end"] for each in told["tasker_attempt_ended"])
    begun = [(each["step_uuid"], each["token"]) for each in told["tasker_attempt_started"]]
    over = [each["attempt"] for each in told["tasker_attempt_ended"]]
    assert ends["succeeded"] == oracle.value("select count(*) from tasker.workflow_step_result_audit where success")
    assert ends["failed"] == oracle.value("select count(*) from tasker.step_failures") == TASKS
    assert begun == list(dict.fromkeys(begun))
    assert {*begun} == {(each["step_uuid"], each["token"]) for each in over}
    rows = oracle.rows("select task_uuid::text, state from tasker.tasks")
    assert sorted((each["task_uuid"], each["state"]) for each in told["tasker_task_finished"]) == sorted(rows)
    moved = told["tasker_transitions"]
    ended = [(each["task_uuid"], each["to_state"]) for each in moved if each["step_uuid"] is None]
    assert sorted(each for each in ended if each[1] != "pending") == sorted(rows)
    states = ("in_progress", "waiting_for_retry", "complete", "error")
    steps = Counter((each["step_uuid"], each["to_state"]) for each in moved if each["step_uuid"])
    rows = oracle.rows(
        "select workflow_step_uuid::text, to_state, count(*) from tasker.workflow_step_transitions group by 1, 2"
    )
    assert {each: count for each, count in steps.items() if each[1] in states} == {
        (step, state): count for step, state, count in rows if state in states
    }
    failed = ("waiting_for_retry", "enqueued_as_error_for_orchestration")
    assert any(each["error_message"] for each in moved if each["to_state"] in failed)


@pytest.mark.parametrize("path", ["inline", "queued"])
def test_what_a_plugin_hears_in_every_process_is_what_the_rows_say(
    database_url: str, fleet: Fleet, oracle: Oracle, tmp_path: Path, path: str
) -> None:
    environment = environment_with(tmp_path, HEARS)
    if path == "queued":
        fleet.orchestrator("orchestrator", environment=environment)
    fleet.worker("worker", str(DIAMOND), "--result-path", path, environment=environment)
    tasks = submit(database_url)
    oracle.wait_for_the_end(tasks)
    names = [*fleet.processes]
    for name in names:
        fleet.signal(name, signal.SIGTERM)
        until(lambda name=name: fleet.ended(name), f"{name} has ended")
    told = heard(tmp_path)
    assert_as_in_the_rows(told, oracle)
    closed = sorted((each["task_uuid"], each["state"]) for each in told.get("tasker_tasks_closed", ()))
    ended = sorted((each["task_uuid"], each["state"]) for each in told["tasker_task_finished"])
    assert closed == ([] if path == "inline" else ended), "only what others ran"
    for hook in ("tasker_process_started", "tasker_process_stopping"):
        assert sorted(each["kind"] for each in told[hook]) == sorted(names)
    assert {each["identity"] for each in told["tasker_process_started"]} == {
        str(worker) for (worker,) in oracle.rows("select worker_uuid from tasker.workers where kind <> 'client'")
    }


def test_a_plugin_that_raises_in_every_hook_and_one_that_blocks_for_a_minute_harm_nothing(
    database_url: str, fleet: Fleet, oracle: Oracle, tmp_path: Path
) -> None:
    roots = [
        str(write_distribution(tmp_path, f"{name}_dist", "tasker.plugins", name, f"{name}_plugin", source))
        for name, source in WORST.items()
    ]
    path = os.pathsep.join(filter(None, [*roots, os.environ.get("PYTHONPATH", "")]))
    tasks = submit(database_url)  # first, so that attempts are what plugins hear of before many looks that find nothing
    fleet.worker("worker", str(DIAMOND), "--port", "0", environment={"PYTHONPATH": path})
    oracle.wait_for_the_end(tasks)
    oracle.check(dict.fromkeys(tasks, "complete"))
    fleet.signal("worker", signal.SIGTERM)
    until(lambda: fleet.ended("worker"), "the worker has ended")
    log = fleet.log("worker")
    assert fleet.processes["worker"].returncode == 0, log
    asked = ("tasker_template_rules", "tasker_domain_events", "tasker_metrics")
    for hook in (*asked, "tasker_process_started", "tasker_attempt_started", "tasker_attempt_ended"):
        assert log.count(f"plugin_failed plugin=watcher hook={hook} ") == 1
    assert log.count("plugin_disabled plugin=watcher reason=tasker_") == 1
    assert "plugin_behind plugin=blocker dropped=0 waiting=" in log
    (off,) = [line for line in log.splitlines() if "plugin_disabled plugin=dumb " in line]
    assert "has not answered within 5 seconds" in off
    assert {hook for hook in MAKING if f"plugin_refused plugin={hook.removeprefix('tasker_')} " in log} == {*MAKING}


def test_a_program_tells_its_plugins_too(
    database_url: str, oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEARD", str(tmp_path / "heard"))
    install_plugin(tmp_path, monkeypatch, "program", HEARS)

    async def work() -> None:
        async with tasker.App(database_url) as app:
            for number in range(TASKS):
                await app.run(DIAMOND, {"seconds": 0, "n": number})

    asyncio.run(work())
    assert_as_in_the_rows(heard(tmp_path), oracle)


def test_repairs_are_told_as_they_are_counted(
    database_url: str, oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = submit(database_url)
    assert len(oracle.rows("delete from pgmq.q_worker_chaos_queue returning msg_id")) == TASKS
    monkeypatch.setenv("HEARD", str(tmp_path / "heard"))
    install_plugin(tmp_path, monkeypatch, "sweeping", HEARS)

    async def work() -> None:
        async with tasker.App(
            database_url,
            sweeps=SweepSettings(Sweep(hint_grace_ms=0), timing=ReadinessTiming(fallback_polling_interval_seconds=0.1)),
        ) as app:
            await app.run(DIAMOND, {"seconds": 0, "n": TASKS})  # with it the program serves their namespace
            for task in tasks:
                await app.finished(task)

    asyncio.run(work())
    told = Counter[str]()
    for each in heard(tmp_path)["tasker_sweep_repaired"]:
        told += Counter(dict(each["counts"]))
    assert told == +oracle.repairs()
    assert told["hint_lost"] >= TASKS
