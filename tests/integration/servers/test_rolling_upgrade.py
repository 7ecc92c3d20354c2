"""Two releases on one database: during an upgrade, processes of the previous release may start again (rule 24)."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

import tasker
from tasker.cli.main import cli
from tasker.db import migrate
from tasker.db.sql_files import release_order
from tests.integration.db.test_migrate import SCRIPTS, Source, rows

OLD, NEW = "0.9.0", "0.10.0"


@pytest.fixture
def old(tmp_path: Path) -> Source:
    return release(tmp_path / "old", "select n * 2")


@pytest.fixture
def new(tmp_path: Path) -> Source:
    return release(tmp_path / "new", "select n * 20")


def release(root: Path, twice: str) -> Source:
    root.mkdir()
    source = Source(root)
    source.migration("0001_initial", "create table tasker.sample (id int);")
    source.function("twice", twice)
    source.function("zero", "select 0")
    return source


def twice(url: str) -> int:
    return int(rows(url, "select tasker.twice(1)")[0][0])


def recorded(url: str) -> dict[str, str]:
    return dict(rows(url, "select name, release from tasker.schema_scripts"))  # type: ignore[arg-type]


def test_an_older_process_leaves_a_newer_function_and_says_so(
    empty_database_url: str, old: Source, new: Source, caplog: pytest.LogCaptureFixture
) -> None:
    migrate.upgrade(empty_database_url, root=old.root, release=OLD)
    assert migrate.upgrade(empty_database_url, root=new.root, release=NEW) == ["functions/twice"]

    with caplog.at_level(logging.WARNING):
        assert migrate.upgrade(empty_database_url, root=old.root, release=OLD) == []

    assert twice(empty_database_url) == 20
    assert caplog.messages == ["schema_newer ours=0.9.0 theirs=0.10.0 kept=functions/twice"]


def test_what_an_older_process_lacks_it_adds_beside_the_newer_functions(
    empty_database_url: str, old: Source, new: Source
) -> None:
    migrate.upgrade(empty_database_url, root=new.root, release=NEW)

    assert migrate.upgrade(empty_database_url, SCRIPTS, root=old.root, release=OLD) == ["backend/queue"]
    assert rows(empty_database_url, "select tasker.queue()") == [(60,)]
    assert recorded(empty_database_url) == {
        "migrations/0001_initial": NEW,
        "functions/twice": NEW,
        "functions/zero": NEW,
        "backend/queue": OLD,
    }


def test_an_upgrade_records_that_what_it_left_is_wanted_by_the_newer_release_too(
    empty_database_url: str, old: Source, new: Source
) -> None:
    migrate.upgrade(empty_database_url, root=old.root, release=OLD)
    before = rows(empty_database_url, "select applied_at from tasker.schema_scripts where name = 'functions/zero'")
    migrate.upgrade(empty_database_url, root=new.root, release=NEW)
    old.function("zero", "select 1")

    assert migrate.upgrade(empty_database_url, root=old.root, release=OLD) == []
    assert set(recorded(empty_database_url).values()) == {NEW}
    assert before == rows(
        empty_database_url, "select applied_at from tasker.schema_scripts where name = 'functions/zero'"
    )


def test_whoever_comes_first_the_newer_release_s_functions_stay(
    empty_database_url: str, old: Source, new: Source
) -> None:
    begin = threading.Barrier(4)

    def start(source: Source, name: str) -> None:
        begin.wait()
        migrate.upgrade(empty_database_url, root=source.root, release=name)

    threads = [threading.Thread(target=start, args=one) for one in [(old, OLD), (new, NEW)] * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert twice(empty_database_url) == 20


def test_within_one_release_the_newest_content_wins(empty_database_url: str, old: Source, new: Source) -> None:
    for source in (old, new, old):
        migrate.upgrade(empty_database_url, root=source.root, release=OLD)

    assert twice(empty_database_url) == 2


def test_a_migration_of_a_newer_release_is_refused_with_what_to_do(
    empty_database_url: str, old: Source, new: Source
) -> None:
    new.migration("0002_more", "select 1;")
    migrate.upgrade(empty_database_url, root=new.root, release=NEW)

    with pytest.raises(migrate.DatabaseError, match=r"does not know migrations/0002_more \(of 0\.10\.0\)") as caught:
        migrate.upgrade(empty_database_url, root=old.root, release=OLD)
    assert caught.value.hint == "install tasker-engine 0.10.0 or newer"


def test_the_documented_way_back_applies_the_older_functions(empty_database_url: str, old: Source, new: Source) -> None:
    page = (Path(__file__).parents[3] / "docs" / "database.md").read_text()
    (way_back,) = [line for line in page.splitlines() if line.startswith("delete from tasker.schema_scripts")]
    for source, name in ((old, OLD), (new, NEW)):
        migrate.upgrade(empty_database_url, root=source.root, release=name)
    with psycopg.connect(empty_database_url) as connection:
        connection.execute(way_back)  # type: ignore[call-overload]

    assert migrate.upgrade(empty_database_url, root=old.root, release=OLD) == ["functions/twice", "functions/zero"]
    assert twice(empty_database_url) == 2


def test_the_status_names_what_a_newer_release_replaced(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "update tasker.schema_scripts set sha256 = 'other', release = '99.0.0' where name = 'functions/claim_v1'"
        )
    found = CliRunner().invoke(cli, ["db", "status", "--database-url", database_url])

    assert found.exit_code == 0, found.output
    assert "superseded functions/claim_v1\n" in found.output
    assert "this version works with them" in found.output


def test_releases_are_ordered_by_number_and_stage() -> None:
    names = ["", "0.2.0.dev1", "0.2.0a1", "0.2.0b2", "0.2.0rc1", "0.2.0rc2", "0.2.0", "0.2.0.post1", "0.10.0", "1.0.0"]

    assert sorted(sorted(names, reverse=True), key=release_order) == names
    assert release_order("nonsense") == release_order("") < release_order("0.0.1")
    assert release_order("1.0") == release_order("1.0.0") < release_order("1.0.1")
    assert release_order("1") == release_order("1.0") < release_order("1.10")


def test_the_release_is_that_of_the_tree_which_runs_and_not_that_of_an_installation(tmp_path: Path) -> None:
    shutil.copytree(Path(tasker.__file__).parent, tmp_path / "tasker", ignore=shutil.ignore_patterns("__pycache__"))
    version = tmp_path / "tasker" / "version.py"
    version.write_text(version.read_text("utf-8").replace(f'"{tasker.__version__}"', '"99.1.0"'))
    code = (
        "import tasker; from tasker.db.sql_files import read_schema; "
        "from tasker.engine.process_registry import Registration; "
        "print(tasker.__version__, read_schema().release, Registration('one', 1000).version)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
    )
    assert done.stdout == "99.1.0 99.1.0 99.1.0\n", done.stderr
