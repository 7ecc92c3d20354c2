"""A step that nobody serves waits visibly, with what to do, and goes on when somebody comes (rule 16)."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from tests.support.command_line import invoke, write_workflow
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.fleets.submitting import submit_folder
from tests.support.waiting import until

pytestmark = pytest.mark.slow

TEMPLATE = """
    name: parcel
    namespace_name: shop
    version: "1.0.0"
    steps:
      - {name: pack, handler: shop.pack}
      - {name: send, handler: shop.send, dependencies: [pack]}
"""
PACK = """
    from tasker.handlers.decorators import step_handler


    @step_handler("shop.pack")
    async def pack():
        return {"packed": True}
"""
SEND = PACK.replace("pack", "send")


def shown(url: str, task: str) -> str:
    return click.unstyle(invoke("task", "show", task, database=url).output)


def states(url: str, task: str) -> dict[str, tuple[str, bool]]:
    """State of each step, and whether it waits for a worker with its handler."""
    report = json.loads(invoke("task", "show", task, "--format", "json", database=url).output)
    return {step["name"]: (step["state"], step["unserved"]) for step in report["steps"]}


def test_a_step_waits_visibly_until_a_worker_has_its_handler(
    database_url: str, fleet: Fleet, oracle: Oracle, tmp_path: Path
) -> None:
    workflow = write_workflow(tmp_path / "parcel", TEMPLATE, PACK)
    (tmp_path / "sending.py").write_text("\n".join(line[4:] for line in SEND.splitlines()))
    task = submit_folder(database_url, workflow)

    assert "pack waits: no live worker has handler shop.pack (namespace shop)" in shown(database_url, task)
    assert "tasker worker --namespace shop --handlers MODULE" in shown(database_url, task)
    assert "no live worker has handler shop.pack" in invoke("task", "list", database=database_url).output

    fleet.worker("packer", "--namespace", "shop", "--handlers", str(workflow / "handlers.py"))
    until(lambda: "send waits: no live worker has handler shop.send" in shown(database_url, task), "send waits")
    # a worker that registers handlers it loaded meanwhile is asked once more, so that the step is claimed a second time
    waits = {"pack": ("complete", False), "send": ("pending", True)}
    until(lambda: states(database_url, task) == waits, "it takes no room in the queue")

    fleet.worker("sender", "--namespace", "shop", "--handlers", str(tmp_path / "sending.py"))
    oracle.wait_for_the_end([task])
    oracle.check({task: "complete"})
    assert "no live worker has handler" not in shown(database_url, task)
    assert "no live worker has handler" not in invoke("task", "list", database=database_url).output


ALONE = """
    name: {name}
    identity_strategy: always_unique
    namespace_name: shop
    version: "1.0.0"
    steps:
      - {{name: {name}, handler: shop.{name}}}
"""


def test_steps_that_nobody_serves_hold_up_no_other_in_a_queue_for_one(
    database_url: str, fleet: Fleet, oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = tmp_path / "tasker.toml"
    configuration.write_text("[common.execution]\nenqueue_window = 1\n")
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(configuration))
    fleet.environment["TASKER_CONFIG_PATH"] = str(configuration)
    folders = {
        name: write_workflow(tmp_path / name, ALONE.format(name=name), PACK.replace("pack", name))
        for name in ("send", "pack")
    }
    tasks = {name: [submit_folder(database_url, folder) for _ in range(3)] for name, folder in folders.items()}
    listed = json.loads(invoke("task", "list", "--format", "json", database=database_url).output)
    assert sorted(each["status"] for each in listed) == ["steps_in_process"] + ["waiting_for_dependencies"] * 5

    for name in ("pack", "send"):
        handlers = str(folders[name] / "handlers.py")
        where = ["--namespace", "shop", "--handlers", handlers, "--concurrency", "1", "--database-url", database_url]
        fleet.program(name, "-m", "tasker", "worker", *where)
        oracle.wait_for_the_end(tasks[name], limit=20)

    oracle.check({task: "complete" for each in tasks.values() for task in each})


def test_the_list_of_workers_tells_where_they_are_and_what_they_have(
    database_url: str, fleet: Fleet, tmp_path: Path
) -> None:
    assert "no processes are running" in invoke("worker", "list", database=database_url).output
    workflow = write_workflow(tmp_path / "parcel", TEMPLATE, PACK + SEND)
    fleet.worker("one", str(workflow), "--concurrency", "3")

    text = invoke("worker", "list", "--callables", database=database_url).output
    (row,) = json.loads(invoke("worker", "list", "--format", "json", database=database_url).output)

    assert (row["pid"], row["state"], row["namespaces"]) == (fleet.processes["one"].pid, "live", ["shop"])
    assert f"{row['worker']} serves\n  shop.pack\n  shop.send\n" in text
    assert "0/3" in text

    fleet.kill("one")
    until(lambda: "lost" in invoke("worker", "list", database=database_url).output, "its lease is over")
