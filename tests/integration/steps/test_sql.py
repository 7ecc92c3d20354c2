"""`tasker.sql` on PostgreSQL and SQLite: parameters stay values, resources read only, and limits hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tasker.errors import ConfigurationError, TaskerError
from tasker.secrets import Secret
from tasker.testing.contexts import step_context
from tasker_steps.sql import RunStatement, SqlResource, make_sql

SCHEMA = """
create table invoices (id integer primary key, customer text not null, total numeric, due date);
insert into invoices values (1, 'ada', 10.5, '2026-01-01'), (2, 'ada', 20, '2026-02-01'), (3, 'bob', 1, null);
"""


@pytest.fixture(scope="module")
def postgresql(server: Any) -> Iterator[str]:
    with server.database() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(SCHEMA)
        yield url


@pytest.fixture
def resource(postgresql: str) -> Iterator[Any]:
    made: list[SqlResource] = []

    def make(**settings: Any) -> SqlResource:
        made.append(make_sql({"url": Secret(postgresql), "connections": 1, **settings}))
        return made[-1]

    yield make
    for each in made:
        each.close()


def ran(resource: SqlResource, statement: str, **inputs: Any) -> dict[str, Any]:
    context = step_context({"resource": "db", "statement": statement, **inputs}, resources={"db": resource})
    return dict(RunStatement().call(context).result or {})


def failure(resource: SqlResource, statement: str, **inputs: Any) -> TaskerError:
    with pytest.raises(TaskerError) as failed:
        ran(resource, statement, **inputs)
    return failed.value


def test_rows_are_read_with_parameters(resource: Any) -> None:
    statement = "select id, total, due, :tags as tags from invoices where customer = :c and id = any(:ids) order by id"
    result = ran(resource(), statement, parameters={"c": "ada", "ids": [1, 2, 3], "tags": {"a": ["%"]}})
    assert result == {
        "count": 2,
        "rows": [
            {"id": 1, "total": 10.5, "due": "2026-01-01", "tags": '{"a": ["%"]}'},
            {"id": 2, "total": 20, "due": "2026-02-01", "tags": '{"a": ["%"]}'},
        ],
    }


def test_values_of_many_types_become_json(resource: Any) -> None:
    statement = """select true as flag, 'a'::bytea as bytes, array[1, 2] as list, '{"a": null}'::jsonb as json,
        '0190b0c0-0000-7000-8000-000000000001'::uuid as id, interval '90 s' as span, null as nothing"""
    assert ran(resource(), statement)["rows"][0] == {
        "flag": True,
        "bytes": "YQ==",
        "list": [1, 2],
        "json": {"a": None},
        "id": "0190b0c0-0000-7000-8000-000000000001",
        "span": 90.0,
        "nothing": None,
    }


WRITES = [
    "insert into invoices values (9, 'x', 1, null)",
    "with gone as (delete from invoices returning id) select * from gone",
    "select setval('numbers', 1)",
    "select make_writable()",
]


@pytest.mark.parametrize("statement", WRITES)
def test_resource_reads_only_unless_it_says_otherwise(resource: Any, postgresql: str, statement: str) -> None:
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("create sequence if not exists numbers")
        connection.execute(
            """create or replace function make_writable() returns void language plpgsql as $$
            begin execute 'set transaction read write'; delete from invoices; end $$"""
        )
    error = failure(resource(), statement)
    assert not error.retryable
    assert ran(resource(), "select count(*) as n from invoices")["rows"] == [{"n": 3}]


SEVERAL = [
    "select 1 as a; delete from invoices",
    "values (1); values (2)",
    "delete from invoices where 1 = 0; select 1",
]


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("statement", SEVERAL)
def test_several_statements_are_refused(resource: Any, statement: str, read_only: bool) -> None:
    error = failure(resource(read_only=read_only), statement)
    assert (error.retryable, error.error_code) == (False, "42601")
    assert ran(resource(), "select count(*) as n from invoices")["rows"] == [{"n": 3}]


@pytest.mark.parametrize("statement", ["drop table invoices", "set role postgres", "commit", "", "do $$ begin end $$"])
def test_statement_that_neither_reads_nor_writes_rows_is_refused(resource: Any, statement: str) -> None:
    context = {"statement": statement} if statement else {"statement": " "}
    assert failure(resource(read_only=False), **context).error_code == "invalid_inputs"


def test_rows_are_written_where_the_resource_allows_it(resource: Any) -> None:
    writable = resource(read_only=False)
    result = ran(
        writable, "insert into invoices values (:i, :c, 5, null) returning id", parameters={"i": 7, "c": "eve"}
    )
    assert result == {"rows": [{"id": 7}], "count": 1}
    assert ran(writable, "update invoices set total = 6 where id = 7") == {"rows": [], "count": 1}
    assert failure(writable, "insert into invoices values (7, 'eve', 1, null)").error_code == "constraint"
    assert ran(writable, "delete from invoices where id = :i", parameters={"i": 7})["count"] == 1


def test_session_of_a_statement_is_reset_before_the_next_one(resource: Any) -> None:
    writable = resource(read_only=False)
    ran(writable, "select set_config('app.tenant', 'ada', false) as t")
    ran(writable, "select set_config('role', 'pg_read_all_data', false) as r")
    after = ran(writable, "select current_setting('app.tenant', true) as t, current_user = session_user as same")
    assert after["rows"] == [{"t": "", "same": True}]


@pytest.mark.parametrize(
    ("statement", "settings", "retryable", "code"),
    [
        ("select generate_series(1, 100)", {"max_rows": 10}, False, "result_too_large"),
        ("select repeat('x', 100000) as text", {"max_bytes": 1000}, False, "result_too_large"),
        ("select pg_sleep(60)", {"timeout_seconds": 0.1}, True, "57014"),
        ("select 1 as a, 2 as a", {}, False, "invalid_result"),
        ("select 'nan'::float as a", {}, False, "invalid_result"),
        ("select int4range(1, 2) as a", {}, False, "invalid_result"),
        ("select * from nothing", {}, False, "42P01"),
        ("selec 1", {}, False, "invalid_inputs"),
        ("select :a", {}, False, "invalid_inputs"),
        ("select pg_terminate_backend(pg_backend_pid())", {}, True, "not_connected"),
    ],
)
def test_failures_are_classified(
    resource: Any, statement: str, settings: dict[str, Any], retryable: bool, code: str
) -> None:
    error = failure(resource(**settings), statement)
    assert (error.retryable, error.error_code) == (retryable, code)


def test_parameter_that_the_statement_lacks_is_refused(resource: Any) -> None:
    error = failure(resource(), "select id from invoices", parameters={"c": 1})
    assert "no parameter :c" in error.message


def test_wrong_password_is_an_authentication_error_and_no_server_is_retried(postgresql: str) -> None:
    nowhere = make_sql({"url": "postgresql://nobody@127.0.0.1:9/x"})
    assert (failure(nowhere, "select 1").error_code, failure(nowhere, "select 1").retryable) == ("not_connected", True)


def test_database_of_tasker_is_refused_unless_it_is_allowed(database_url: str) -> None:
    assert failure(make_sql({"url": database_url}), "select 1 as a").error_code == "engine_database"
    allowed = make_sql({"url": database_url, "engine_database": True})
    assert ran(allowed, "select 1 as a")["count"] == 1
    allowed.close()


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'data.db'}"
    resource = make_sql({"url": url, "read_only": False})
    resource.engine.connect().exec_driver_sql("create table t (id integer primary key, name text)").connection.commit()
    ran(resource, "insert into t values (1, :n)", parameters={"n": "ada"})
    return url


def test_sqlite_is_read_and_written(sqlite: str) -> None:
    assert ran(make_sql({"url": sqlite}), "select * from t where name = :n", parameters={"n": "ada"}) == {
        "rows": [{"id": 1, "name": "ada"}],
        "count": 1,
    }


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("insert into t values (2, 'x')", "SQLITE_READONLY"),
        ("select 1; select 2", "sql_error"),
        ("with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n", "SQLITE_INTERRUPT"),
    ],
)
def test_sqlite_has_the_same_limits(sqlite: str, statement: str, code: str) -> None:
    assert failure(make_sql({"url": sqlite, "timeout_seconds": 0.2}), statement).error_code == code


def test_sqlite_reaches_no_other_file(sqlite: str, tmp_path: Path) -> None:
    import sqlalchemy

    resource = make_sql({"url": sqlite, "read_only": False})
    with resource.engine.connect() as connection:
        for statement in (f"attach database '{tmp_path / 'other.db'}' as other", "pragma query_only = off"):
            with pytest.raises(sqlalchemy.exc.DatabaseError, match="not authorized"):
                connection.exec_driver_sql(statement)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"url": "no url"}, "URL of SQLAlchemy"),
        ({"url": "mysql+pymysql://u@h/d"}, "read_only"),
        ({"url": "nosuch://u@h/d", "read_only": False}, "url"),
        ({"url": "sqlite://", "read_only": "yes"}, "true or false"),
        ({"url": "sqlite://", "echo": True}, "unknown key 'echo'"),
    ],
)
def test_mistake_of_the_configuration_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        make_sql(settings)
    assert message in refused.value.message
