"""`tasker db` on a server's database and on the embedded one."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result

from tasker.app import App
from tasker.cli.main import cli
from tasker.db.embedded import EmbeddedServer
from tests.acceptance.examples.workflow_case import WORKFLOWS
from tests.support.command_line import Running, run_json
from tests.support.servers.databases import Server
from tests.support.servers.private_postgres import copied

LINEAR = WORKFLOWS / "linear_math"


def db(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["db", *arguments])


def test_an_upgrade_makes_the_database_current(empty_database_url: str) -> None:
    where = ("--database-url", empty_database_url)
    before = db("status", *where)
    first = db("upgrade", *where)
    second = db("upgrade", *where)
    after = db("status", *where, "--format", "json")

    assert (before.exit_code, "empty" in before.output, "tasker db upgrade" in before.output) == (1, True, True)
    assert (first.exit_code, "applied migrations/0001_initial" in first.output) == (0, True)
    assert (second.exit_code, second.output.count("\n"), "already up to date" in second.output) == (0, 1, True)
    assert (after.exit_code, json.loads(after.output)["state"]) == (0, "current")


def test_status_of_an_empty_database_is_two_lines_and_calls_nothing_outdated(empty_database_url: str) -> None:
    where = ("--database-url", empty_database_url)
    said = db("status", *where)
    found = json.loads(db("status", *where, "--format", "json").stdout)
    applied = json.loads(db("upgrade", *where, "--format", "json").stdout)["applied"]

    first, second = said.output.splitlines()
    assert first.endswith(f": empty, {len(applied)} scripts to apply")
    assert second == "Run `tasker db upgrade` with the same options."
    assert (found["pending"], found["outdated"]) == (applied, [])


def test_an_upgrade_as_json_names_what_was_applied(empty_database_url: str) -> None:
    where = ("--database-url", empty_database_url, "--format", "json")
    first, second = (json.loads(db("upgrade", *where).stdout) for _ in range(2))

    assert first.keys() == {"database", "applied"}
    assert (first["applied"][0], second["applied"]) == ("migrations/0001_initial", [])
    assert first["database"] == second["database"]


def test_an_upgrade_waits_for_its_server_where_it_is_told_to_and_as_long_as_is_configured(
    tmp_path: Path, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = EmbeddedServer.start(copied(cluster, tmp_path), settings={"fsync": "off"}, linger_seconds=0)
    where = ("--database-url", server.url)
    assert server.stop()
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(patience(tmp_path, 1)))
    at_once, in_vain = db("upgrade", *where), db("upgrade", "--wait", *where)
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(patience(tmp_path, 120)))
    waiting = Running.start("db", "upgrade", "--wait", *where)
    waiting.wait_for("waiting for database")
    server = EmbeddedServer.start(tmp_path, settings={"fsync": "off"}, linger_seconds=0)
    try:
        assert waiting.end()[0] == 0
    finally:
        server.stop()

    assert (at_once.exit_code, "waited" in at_once.stderr) == (1, False)
    assert (in_vain.exit_code, "waited 1 seconds in vain for database" in in_vain.stderr) == (1, True)


def patience(folder: Path, seconds: int) -> Path:
    """A configuration that says how long to wait for the database."""
    path = folder / "tasker.toml"
    path.write_text(f"[common.database]\nconnect_wait_seconds = {seconds}\n")
    return path


def test_an_upgrade_creates_the_database(server: Server) -> None:
    url = server.url_of(f"tasker_test_{os.getpid()}_by_command")
    try:
        assert db("upgrade", "--database-url", url).exit_code == 0
        assert db("status", "--database-url", url).exit_code == 0
    finally:
        server.drop(url)


def test_without_a_url_the_embedded_database_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)

    assert db("upgrade").exit_code == 0
    assert (tmp_path / ".tasker" / "postgres" / "data").is_dir()


def test_an_unreachable_server_is_one_message() -> None:
    result = db("status", "--database-url", "postgresql://127.0.0.1:1/x")

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: cannot connect to database 'x' on 127.0.0.1:")
    assert "Traceback" not in result.output


def test_a_check_of_a_healthy_database_finds_nothing(database_url: str) -> None:
    run_json(LINEAR, database=database_url)
    found = db("check", "--database-url", database_url)
    assert (found.exit_code, found.output) == (0, "no problems found\n")


def test_a_check_tells_what_sweeps_repair_and_what_nobody_does(database_url: str) -> None:
    where = ("--database-url", database_url)
    task = submitted(LINEAR, database_url)
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute("update tasker.workflow_steps set updated_at = now() - interval '1 hour'")
        admin.execute("delete from pgmq.q_worker_linear_queue")
        admin.execute("insert into tasker.poison_messages (queue_name, reason) values ('q', 'points to no step')")
        lost = db("check", *where, "--format", "json")
        admin.execute("update tasker.tasks set done = done + 1 where task_uuid = %s", [task])
        broken = db("check", *where)
    findings = {each["what"]: each for each in json.loads(lost.output)}
    assert lost.exit_code == 0, "what sweeps repair is not broken"
    assert findings["enqueued in linear, without a message"]["count"] == 1
    assert "sweep" in findings["enqueued in linear, without a message"]["repaired_by"]
    assert findings["quarantined messages: q: points to no step"]["count"] == 1
    assert broken.exit_code == 1
    assert "counters differ from the rows" in broken.output
    assert task in broken.output
    assert broken.output.endswith("problems found\n")


def test_a_check_repairs_what_a_sweep_would_and_counts_and_tells_it(database_url: str) -> None:
    where = ("--database-url", database_url)
    submitted(LINEAR, database_url)
    with psycopg.connect(database_url, autocommit=True) as admin:
        hour_ago = "now() - interval '1 hour'"
        admin.execute(f"update tasker.workflow_steps set updated_at = {hour_ago}, hinted_at = {hour_ago}")
        admin.execute("delete from pgmq.q_worker_linear_queue")
        admin.execute("update tasker.enqueue_counters set enqueued = enqueued + 3")
        dry = json.loads(db("check", *where, "--format", "json").output)
        (before,) = admin.execute("select count(*) from tasker.repairs").fetchone() or ()
        repaired = json.loads(db("check", *where, "--repair", "--format", "json").output)
        counted = dict(admin.execute("select kind, repaired from tasker.repairs").fetchall())
        again = db("check", *where, "--repair")
        (messages,) = admin.execute("select count(*) from pgmq.q_worker_linear_queue").fetchone() or ()

    drift = {"counter of enqueued steps differs", "enqueued in linear, without a message"}
    assert {(each["what"], each["is_broken"]) for each in dry} == {(what, False) for what in drift}
    told = {each["what"]: each["examples"] for each in dry}
    assert told["counter of enqueued steps differs"] == ["namespace linear: counter 4, rows 1"]
    assert before == 0, "without the option nothing is changed"
    assert repaired["repaired"] == counted == {"hint_lost": 1, "enqueued_miscounted": 1}
    assert (repaired["findings"], messages) == ([], 1)
    assert (again.exit_code, again.output) == (0, "nothing to repair\nno problems found\n")


def submitted(workflow: Path, url: str) -> str:
    async def submit() -> str:
        async with App(url, handlers=[workflow], work=False) as app:
            return (await app.submit(workflow, {"value": 11})).task_uuid

    return asyncio.run(submit())
