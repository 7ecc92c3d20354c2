"""The long run: hundreds of mixed tasks while processes, the database and messages fail. `make test-chaos`.

Seeded: TASKER_CHAOS_SEED (default 1), TASKER_CHAOS_TASKS (default 500). Bounded by the number of kills and by time.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import tasker
from tasker.db import migrate
from tasker.db.database import ensure_database
from tasker.db.embedded import EmbeddedServer
from tasker.services.submission import Request, Submitted
from tests.support.fleet import ROOT, Fleet, pause
from tests.support.oracle import Oracle
from tests.support.waiting import until

SEED = int(os.environ.get("TASKER_CHAOS_SEED", "1"))
TASKS = int(os.environ.get("TASKER_CHAOS_TASKS", "500"))
EXAMPLES = sorted(path.parent for path in ROOT.glob("workflows/*/workflow.yaml"))
SLOW = ROOT / "tests" / "chaos" / "workflow"
KILLS = 25


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server of our own, which the test may kill."""
    server = EmbeddedServer.start(tmp_path / "postgres", linger_seconds=1)
    ensure_database(server.url)
    yield server
    server.stop()


async def submit(url: str, count: int) -> list[str]:
    """A mix of all example workflows with their own input, and slow tasks; each is expected to complete."""
    created: list[str] = []
    async with tasker.App(url, work=False) as app:
        for folder in EXAMPLES:
            content = json.loads((folder / "input.json").read_text())
            requests = [
                Request(content, idempotency_key=f"{folder.name}-{n}") for n in range(count // len(EXAMPLES) // 2)
            ]
            created += [a.task_uuid for a in await app.submit_many(folder, requests) if isinstance(a, Submitted)]
        slow = [Request({"seconds": 0.1, "n": number}) for number in range(count - len(created))]
        created += [a.task_uuid for a in await app.submit_many(SLOW, slow) if isinstance(a, Submitted)]
    return created


@pytest.mark.parametrize("path", ["inline", "queued"])
@pytest.mark.parametrize("faults", ["", "drop:0.02,dup:0.02,delay:0.05"], ids=["quiet_messages", "faulty_messages"])
def test_tasks_survive_kills_at_random_moments(
    embedded: EmbeddedServer, tmp_path: Path, path: str, faults: str
) -> None:
    chance = random.Random(SEED)
    fleet = Fleet(embedded.url, tmp_path, chaos=f"{faults},seed:{SEED}" if faults else "")
    migrate_all(embedded.url)
    oracle = Oracle(embedded.url)
    try:
        for number in range(2):
            fleet.orchestrator(f"orchestrator{number}")
        for number in range(3):
            fleet.worker(f"worker{number}", *map(str, [*EXAMPLES, SLOW]), "--result-path", path, "--concurrency", "10")
        tasks = asyncio.run(submit(embedded.url, TASKS))
        killed: Counter[str] = Counter()
        while oracle.finished() < len(tasks) and killed.total() < KILLS:
            pause(chance.uniform(0.2, 1.5))
            name = chance.choice(sorted(fleet.processes))
            fleet.kill(name)
            killed[name.rstrip("0123456789")] += 1
            fleet.restart(name)
        oracle.wait_for_the_end(tasks, limit=600)
        oracle.check(dict.fromkeys(tasks, "complete"))
        repairs = +oracle.repairs()
        lost = oracle.failures("worker_lost")
        print(f"{len(tasks)} tasks, killed {dict(killed)}, lost attempts {lost}, repairs {dict(repairs)}")
        assert repairs["lost_worker"] == lost
        assert set(repairs) <= {"lost_worker", "hint_lost", "result_message_lost"}
    finally:
        oracle.close()
        fleet.stop()


def test_tasks_survive_a_database_that_is_killed_and_started_again(embedded: EmbeddedServer, tmp_path: Path) -> None:
    migrate_all(embedded.url)
    fleet = Fleet(embedded.url, tmp_path)
    oracle = Oracle(embedded.url)
    servers: list[EmbeddedServer] = []
    try:
        for number in range(2):
            fleet.worker(f"worker{number}", *map(str, [*EXAMPLES, SLOW]), "--concurrency", "10")
        tasks = asyncio.run(submit(embedded.url, TASKS // 2))
        for _ in range(3):
            pause(1.0)
            oracle.close()
            kill_postmaster(embedded)
            servers.append(EmbeddedServer.start(embedded.data_dir, linger_seconds=1))
            oracle = Oracle(embedded.url)
        oracle.wait_for_the_end(tasks, limit=300)
        oracle.check(dict.fromkeys(tasks, "complete"))
    finally:
        oracle.close()
        fleet.stop()
        for server in servers:
            server.stop()


def migrate_all(url: str) -> None:
    """The schema with the default backend."""
    from importlib.metadata import entry_points

    (pgmq,) = entry_points(group="tasker.backends", name="pgmq")
    migrate.upgrade(url, pgmq.load().create({}).install_sql())


def kill_postmaster(server: EmbeddedServer) -> None:
    """`kill -9` of the server's first process."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        row = connection.execute("select pg_read_file('postmaster.pid')").fetchone()
    assert row is not None
    pid = int(row[0].split()[0])
    os.kill(pid, signal.SIGKILL)
    until(lambda: is_gone(pid), "the server is gone")


def is_gone(pid: int) -> bool:
    """True for a process that ended, whether or not its parent has taken notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
