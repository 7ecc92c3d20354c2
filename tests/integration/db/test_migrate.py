"""The schema's way into a database, with a small schema of its own."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tasker import __version__
from tasker.db import migrate
from tasker.db.sql_files import read_schema
from tasker.db.startup_wait import with_database
from tasker.errors import DatabaseError, DatabaseUnavailable, SchemaOutdated, UsageError
from tests.support.waiting import until

VERSION_FILE = """
from tasker.db.migrations.run_sql import run_sql
revision, down_revision = "{number}", {before!r}
def upgrade(): run_sql("{name}.sql")
"""
SCRIPTS = [("queue", "create or replace function tasker.queue() returns int language sql as 'select tasker.twice(3)'")]


class Source:
    """A folder like `tasker/db`, to which a test adds files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.before: str | None = None
        for folder in ("sql/migrations", "sql/functions", "sql/views", "migrations/versions"):
            (root / folder).mkdir(parents=True)

    def migration(self, name: str, sql: str) -> None:
        number = name.partition("_")[0]
        (self.root / f"sql/migrations/{name}.sql").write_text(sql)
        text = VERSION_FILE.format(number=number, before=self.before, name=name)
        (self.root / f"migrations/versions/{name}.py").write_text(text)
        self.before = number

    def function(self, name: str, body: str) -> None:
        sql = f"create or replace function tasker.{name}(n int) returns int language sql as $$ {body} $$;"
        (self.root / f"sql/functions/{name}.sql").write_text(sql)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    source = Source(tmp_path)
    up = """create table tasker.sample (id int, data jsonb default '{"a": ":b %s"}'::jsonb);
            insert into tasker.sample values (1);"""
    source.migration("0001_initial", up)
    source.function("twice", "select n * 2")
    source.function("again", "select tasker.twice(n) + tasker.zero(n)")  # calls one that is made later
    source.function("zero", "select 0")
    return source


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()  # type: ignore[arg-type]


def test_an_empty_database_gets_everything_in_order(empty_database_url: str, source: Source) -> None:
    applied = migrate.upgrade(empty_database_url, SCRIPTS, root=source.root)

    functions = ["functions/again", "functions/twice", "functions/zero"]
    assert applied == ["migrations/0001_initial", *functions, "backend/queue"]
    assert rows(empty_database_url, "select tasker.queue(), tasker.again(2), data from tasker.sample") == [
        (6, 4, {"a": ":b %s"})
    ]
    assert rows(empty_database_url, "select version_num from tasker.alembic_version") == [("0001",)]


def test_a_second_upgrade_has_nothing_to_do(empty_database_url: str, source: Source) -> None:
    migrate.upgrade(empty_database_url, SCRIPTS, root=source.root)

    assert migrate.upgrade(empty_database_url, SCRIPTS, root=source.root) == []
    assert migrate.upgrade(empty_database_url, root=source.root) == []


def test_a_current_database_loads_neither_alembic_nor_sqlalchemy(database_url: str) -> None:
    code = (
        "import sys; from tasker.db import migrate; assert migrate.upgrade(sys.argv[1]) == []; "
        "print([m for m in ('alembic', 'sqlalchemy', 'httpx', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, database_url], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_only_a_changed_function_is_applied_again(empty_database_url: str, source: Source) -> None:
    migrate.upgrade(empty_database_url, SCRIPTS, root=source.root)
    source.function("twice", "select n + n + 100")

    assert migrate.upgrade(empty_database_url, SCRIPTS, root=source.root) == ["functions/twice"]
    assert rows(empty_database_url, "select tasker.queue()") == [(106,)]


def test_a_new_migration_is_applied_once(empty_database_url: str, source: Source) -> None:
    migrate.upgrade(empty_database_url, root=source.root)
    source.migration("0002_more", "insert into tasker.sample values (2);")

    assert migrate.upgrade(empty_database_url, root=source.root) == ["migrations/0002_more"]
    assert migrate.upgrade(empty_database_url, root=source.root) == []
    assert rows(empty_database_url, "select id from tasker.sample order by id") == [(1,), (2,)]


def test_a_failing_script_is_named_with_its_line_and_leaves_nothing(empty_database_url: str, source: Source) -> None:
    (source.root / "sql/functions/wrong.sql").write_text("-- one\n\nselect nonsense;")

    with pytest.raises(DatabaseError, match=r"functions/wrong, line 3: .*nonsense"):
        migrate.upgrade(empty_database_url, root=source.root)

    assert rows(empty_database_url, "select to_regnamespace('tasker')") == [(None,)]


def test_a_failing_migration_is_an_error_of_ours_and_leaves_nothing(empty_database_url: str, source: Source) -> None:
    source.migration("0002_wrong", "select nonsense;")

    with pytest.raises(DatabaseError, match="nonsense"):
        migrate.upgrade(empty_database_url, root=source.root)

    assert rows(empty_database_url, "select to_regnamespace('tasker')") == [(None,)]


@pytest.mark.parametrize("where", ["migration", "function"])
def test_a_server_that_goes_away_in_the_middle_of_an_upgrade_is_waited_for(
    empty_database_url: str, source: Source, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("create sequence public.tries")  # what it gave is not rolled back
    ends = """do $$ begin
      if nextval('public.tries') = 1 then perform pg_terminate_backend(pg_backend_pid()); end if;
    end $$"""
    scripts = SCRIPTS
    if where == "migration":
        source.migration("0002_away", ends)
    else:
        scripts = [*SCRIPTS, ("away", ends)]
    with_database(empty_database_url, 60, lambda: migrate.upgrade(empty_database_url, scripts, root=source.root))

    assert rows(empty_database_url, "select last_value from public.tries") == [(2,)]
    assert rows(empty_database_url, "select tasker.queue()") == [(6,)]
    assert [record.getMessage().split()[0] for record in caplog.records] == ["waiting", "database"]
    assert "was lost" in caplog.text


def test_a_newer_database_is_refused(empty_database_url: str, source: Source, tmp_path: Path) -> None:
    source.migration("0002_more", "select 1;")
    migrate.upgrade(empty_database_url, root=source.root)
    (source.root / "sql/migrations/0002_more.sql").unlink()

    with pytest.raises(SchemaOutdated, match=r"newer than this version .* migrations/0002_more") as caught:
        migrate.upgrade(empty_database_url, root=source.root)
    assert caught.value.hint == f"install tasker-engine {__version__} or newer"
    assert migrate.status(empty_database_url, root=source.root).state == "newer"


def test_an_edited_migration_is_refused(empty_database_url: str, source: Source) -> None:
    migrate.upgrade(empty_database_url, root=source.root)
    (source.root / "sql/migrations/0001_initial.sql").write_text("select 1;")

    with pytest.raises(SchemaOutdated, match="migrations/0001_initial changed after it was applied"):
        migrate.upgrade(empty_database_url, root=source.root)
    assert migrate.status(empty_database_url, root=source.root).state == "edited"


def test_the_status_of_a_database_names_what_it_lacks(empty_database_url: str, source: Source) -> None:
    before = migrate.status(empty_database_url, SCRIPTS, root=source.root)
    migrate.upgrade(empty_database_url, root=source.root)
    between = migrate.status(empty_database_url, SCRIPTS, root=source.root)
    migrate.upgrade(empty_database_url, SCRIPTS, root=source.root)
    after = migrate.status(empty_database_url, SCRIPTS, root=source.root)

    functions = ("functions/again", "functions/twice", "functions/zero")
    assert (before.state, before.pending) == ("empty", ("migrations/0001_initial", *functions, "backend/queue"))
    assert (between.state, between.pending, between.outdated) == ("outdated", ("backend/queue",), ())
    assert after.to_dict()["state"] == "current"


def test_upgrades_at_the_same_time_apply_everything_once(empty_database_url: str, source: Source) -> None:
    results: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: results.append(migrate.upgrade(empty_database_url, root=source.root)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(map(len, results)) == [0, 0, 4]
    assert rows(empty_database_url, "select count(*) from tasker.sample") == [(1,)]


def test_an_upgrade_gives_up_behind_another_that_does_not_end(empty_database_url: str, source: Source) -> None:
    with psycopg.connect(empty_database_url) as other:
        other.execute("select pg_advisory_xact_lock(%s)", [migrate.UPGRADE_LOCK])

        with pytest.raises(DatabaseError, match=r"another upgrade .* 0\.05 seconds"):
            migrate.upgrade(empty_database_url, root=source.root, lock_timeout_seconds=0.05)


def test_the_printed_sql_makes_the_same_schema(empty_database_url: str, source: Source) -> None:
    script = migrate.offline_sql(SCRIPTS, root=source.root)
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute(script)  # type: ignore[call-overload]

    assert migrate.upgrade(empty_database_url, SCRIPTS, root=source.root) == []
    assert rows(empty_database_url, "select tasker.queue(), data from tasker.sample") == [(6, {"a": ":b %s"})]
    assert rows(empty_database_url, "select version_num from tasker.alembic_version") == [("0001",)]


def test_the_real_migrations_go_up_and_down_and_up(empty_database_url: str) -> None:
    from alembic import command
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    everything = migrate.upgrade(empty_database_url)
    connect = functools.partial(psycopg.connect, empty_database_url)
    engine = create_engine("postgresql+psycopg://", creator=connect, poolclass=NullPool)
    with engine.begin() as connection:
        command.downgrade(migrate.alembic_config(connection=connection), "base")

    tables = "select tablename from pg_tables where schemaname = 'tasker'"
    assert rows(empty_database_url, tables) == [("alembic_version",)]
    assert migrate.upgrade(empty_database_url) == everything


def test_every_migration_has_a_version_that_runs_it() -> None:
    names = [script.name.partition("/")[2] for script in read_schema().migrations]

    assert names
    for name in names:
        assert f'run_sql("{name}.sql")' in (migrate.HERE / f"migrations/versions/{name}.py").read_text()
    assert len(list((migrate.HERE / "migrations/versions").glob("[0-9]*.py"))) == len(names)


def test_an_unreachable_server_is_named_without_its_password() -> None:
    with pytest.raises(DatabaseUnavailable, match=r"cannot connect to database 'x' on 127\.0\.0\.1") as caught:
        migrate.upgrade("postgresql://me:secret@127.0.0.1:1/x")
    assert "secret" not in str(caught.value)


def test_a_url_of_another_database_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="does not name a PostgreSQL database"):
        migrate.upgrade("mysql://localhost/x")


VIEWS = """-- The first.
create or replace view tasker.first_view as select {first} as value;

-- The second.
create or replace view tasker.second_view as select {second} as value, (select value from tasker.first_view) as first;
"""


def test_upgrade_replaces_only_the_views_that_changed(empty_database_url: str, source: Source) -> None:
    file = source.root / "sql/views/both.sql"
    file.write_text(VIEWS.format(first=1, second=1))
    migrate.upgrade(empty_database_url, root=source.root)
    file.write_text(VIEWS.format(first=1, second=2))
    with psycopg.connect(empty_database_url) as reader:
        reader.execute("select * from tasker.first_view")
        applied = migrate.upgrade(empty_database_url, root=source.root)

    assert applied == ["views/second_view"]
    assert rows(empty_database_url, "select * from tasker.second_view") == [(2, 1)]


def test_upgrade_gives_way_to_a_reader_of_a_view_and_blocks_no_other(
    empty_database_url: str, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    file = source.root / "sql/views/both.sql"
    file.write_text(VIEWS.format(first=1, second=1))
    migrate.upgrade(empty_database_url, root=source.root)
    file.write_text(VIEWS.format(first=2, second=2))
    applied: list[str] = []
    thread = threading.Thread(target=lambda: applied.extend(migrate.upgrade(empty_database_url, root=source.root)))
    with psycopg.connect(empty_database_url) as reader, caplog.at_level("INFO", "tasker.db"):
        reader.execute("select * from tasker.second_view")
        thread.start()
        until(lambda: "views_in_use" in caplog.text, "the upgrade gives way")
        with psycopg.connect(empty_database_url, options="-c lock_timeout=20s") as other:
            assert other.execute("select * from tasker.second_view").fetchall() == [(1, 1)]
        assert not applied
    thread.join()

    assert applied == ["views/first_view", "views/second_view"]
    assert caplog.text.count("views_in_use") == 1
    assert rows(empty_database_url, "select * from tasker.second_view") == [(2, 2)]


def test_upgrade_that_cannot_have_its_views_names_who_reads_them(empty_database_url: str, source: Source) -> None:
    file = source.root / "sql/views/both.sql"
    file.write_text(VIEWS.format(first=1, second=1))
    migrate.upgrade(empty_database_url, root=source.root)
    file.write_text(VIEWS.format(first=2, second=2))
    with psycopg.connect(empty_database_url, application_name="report") as reader:
        reader.execute("select * from tasker.second_view")
        with pytest.raises(DatabaseError, match=f"in use by report \\(pid {reader.info.backend_pid}\\)"):
            migrate.upgrade(empty_database_url, root=source.root, lock_timeout_seconds=0.1)

    assert rows(empty_database_url, "select * from tasker.second_view") == [(1, 1)]


def test_the_files_of_views_contain_nothing_but_views() -> None:
    files = sorted((migrate.HERE / "sql" / "views").glob("*.sql"))
    views = [script for script in read_schema().replaceable if script.is_view]

    assert "".join(script.sql for script in views) == "".join(file.read_text("utf-8") for file in files)
    assert all(script.sql.count("create or replace") == 1 for script in views)


def test_no_two_scripts_are_recorded_under_one_name() -> None:
    schema = read_schema()
    names = [script.name for script in (*schema.migrations, *schema.replaceable)]

    assert len(names) == len({*names})


def test_views_follow_the_functions_that_they_use(empty_database_url: str, source: Source) -> None:
    (source.root / "sql/views/a_first.sql").write_text(
        "create or replace view tasker.four as select tasker.twice(2) as four;"
    )

    assert migrate.upgrade(empty_database_url, root=source.root)[-1] == "views/four"
    assert rows(empty_database_url, "select four from tasker.four") == [(4,)]
