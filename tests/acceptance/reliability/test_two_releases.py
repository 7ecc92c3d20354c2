"""An upgrade under load: processes of two releases at work side by side, the database migrated between them."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import tasker
from tasker.services.submission.submit import Submission, SubmissionResult
from tests.support.fleets.fleet import ROOT, Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.servers]

DIAMOND = ROOT / "tests" / "chaos" / "workflow"
NEXT = "99.1.0"
MIGRATION = """
from tasker.db.migrations.run_sql import run_sql

revision = "9999"
down_revision = "{former}"


def upgrade() -> None:
    run_sql("9999_season.sql")
"""
ADDS = "alter table tasker.tasks add column season text;\ncreate table tasker.seasons (season text primary key);\n"
REPLACED = ("claims/claim_v1.sql", "completion/advance_v1.sql", "submission/submit_v1.sql")
AT_WORK = "select version, count(*) from tasker.workers where stopped_at is null and kind <> 'client' group by 1"
STEPS_BY_RELEASE = """select w.version, count(*) from tasker.workflow_step_result_audit a
  join tasker.workers w on w.worker_uuid = a.worker_uuid where a.success group by 1"""


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which `tasker` is the next release: other functions, and a migration that only adds."""
    root = tmp_path_factory.mktemp("release")
    for name in ("tasker", "backends", "plugins"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    version, database = root / "tasker" / "version.py", root / "tasker" / "db"
    version.write_text(version.read_text("utf-8").replace(f'"{tasker.__version__}"', f'"{NEXT}"'))
    former = max(path.name[:4] for path in (database / "migrations" / "versions").glob("[0-9]*.py"))
    (database / "migrations" / "versions" / "9999_season.py").write_text(MIGRATION.format(former=former))
    (database / "sql" / "migrations" / "9999_season.sql").write_text(ADDS)
    for name in REPLACED:
        file = database / "sql" / "functions" / name
        file.write_text(file.read_text("utf-8").replace("as $$", f"as $$ -- {NEXT}", 1))
    # safe path: not the checkout, which is the working directory
    path = ":".join(map(str, (root, root / "backends", root / "plugins")))
    return {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}


@contextmanager
def load(url: str, tasks: list[str]) -> Iterator[None]:
    """Somebody who submits all the time, with the former release."""
    enough, failures = threading.Event(), list[BaseException]()

    async def submit() -> None:
        async with tasker.App(url, work=False) as app:
            while not enough.is_set():
                answers = await app.submit_many(DIAMOND, [Submission({"seconds": 0.05, "n": len(tasks)})] * 4)
                tasks.extend(answer.task_uuid for answer in answers if isinstance(answer, SubmissionResult))
                await asyncio.sleep(0.1)

    def run() -> None:
        try:
            asyncio.run(submit())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()
    assert not failures, failures


def test_a_fleet_is_upgraded_under_load_and_every_task_is_done_once(
    database_url: str, fleet: Fleet, oracle: Oracle, newer: dict[str, str]
) -> None:
    tasks: list[str] = []

    def more(of: str) -> None:
        """Wait until workers of that release have ended some more steps."""
        before = dict(oracle.rows(STEPS_BY_RELEASE)).get(of, 0)
        until(lambda: dict(oracle.rows(STEPS_BY_RELEASE)).get(of, 0) >= before + 20, f"{of} ends steps")

    old = tasker.__version__
    fleet.orchestrator("old orchestrator")
    for name in ("old inline", "old queued"):
        fleet.worker(name, str(DIAMOND), "--result-path", name.removeprefix("old "))
    with load(database_url, tasks):
        more(old)
        command = [sys.executable, "-m", "tasker", "db", "upgrade", "--database-url", database_url]
        migrated = subprocess.run(command, capture_output=True, text=True, env={**fleet.environment, **newer}, cwd=ROOT)
        assert migrated.returncode == 0, migrated.stderr
        assert oracle.value("select count(*) from tasker.schema_scripts where release = %s", NEXT) > len(REPLACED)
        more(old)  # they go on with what the next release needs

        fleet.orchestrator("new orchestrator", environment=newer)
        for name in ("new inline", "new queued"):
            fleet.worker(name, str(DIAMOND), "--result-path", name.removeprefix("new "), environment=newer)
        assert dict(oracle.rows(AT_WORK)) == {old: 3, NEXT: 3}
        more(NEXT)
        more(old)  # side by side

        for name in ("old orchestrator", "old inline", "old queued"):
            fleet.signal(name, signal.SIGTERM)
            until(lambda name=name: fleet.ended(name), f"{name} has ended")
        more(NEXT)

    oracle.wait_for_the_end(tasks)
    oracle.check(dict.fromkeys(tasks, "complete"))
    assert oracle.value("select count(*) from tasker.workflow_step_result_audit where success") == 5 * len(tasks)
    assert oracle.failures("retryable_error") == oracle.value("select count(*) from tasker.step_failures") == len(tasks)
    assert oracle.refused() == 0

    refused = subprocess.run(
        [sys.executable, "-m", "tasker", "worker", "--no-config", str(DIAMOND), "--database-url", database_url],
        capture_output=True,
        text=True,
        env=fleet.environment,
        cwd=ROOT,
    )
    assert refused.returncode != 0
    assert f"does not know migrations/9999_season (of {NEXT})" in refused.stderr
    assert f"install tasker-engine {NEXT} or newer" in refused.stderr
