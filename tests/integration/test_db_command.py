"""`tasker db` on a server's database and on the embedded one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tasker.cli.main import cli
from tests.conftest import Server


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
    assert (second.exit_code, second.output.count("\n"), "already current" in second.output) == (0, 1, True)
    assert (after.exit_code, json.loads(after.output)["state"]) == (0, "current")


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
