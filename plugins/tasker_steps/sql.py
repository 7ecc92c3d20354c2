"""Plugin `sql`: the step `tasker.sql` runs one statement on a database that the configuration of the worker defines."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from time import monotonic
from typing import Any
from uuid import UUID

import sqlalchemy
from sqlalchemy import exc

from tasker.dataclasses import dataclass
from tasker.errors import AuthenticationError, ConfigurationError, PermanentError, RetryableError
from tasker.errors.handler import sqlstate
from tasker.handlers.builtin import INVALID_INPUTS, BuiltinHandler, seconds_left
from tasker.handlers.context import StepContext
from tasker.handlers.results import StepHandlerResult
from tasker.plugins.hooks import hookimpl
from tasker.resources.tables import flag_of, number_of, refuse_unknown, revealed
from tasker.template.builtin import BUILTIN, SQL

FIRST_WORD = re.compile(r"[\s(]*([A-Za-z]+)")
READING = frozenset(("select", "values", "table"))
WRITING = frozenset(("insert", "update", "delete", "merge", "replace", "call"))
POSTGRESQL, SQLITE = "postgresql", "sqlite"
DENIED_IN_SQLITE = frozenset((19, 24, 25))
"""Codes of the authorizer: PRAGMA, ATTACH, DETACH."""
OUTCOME_UNKNOWN = "outcome_unknown"
RETRIED_CLASSES = ("08", "53")
RETRIED = frozenset(("40001", "40P01", "55P03", "57014", "57P01", "57P02", "57P03"))
"""Serialization, deadlock, lock, timeout and shutdown: another attempt may succeed."""


@dataclass(frozen=True, slots=True)
class SqlResource:
    """Connections to one database, and the limits of statements."""

    engine: sqlalchemy.Engine
    read_only: bool = True
    max_rows: int = 1000
    max_bytes: int = 1024 * 1024
    timeout_seconds: float = 30.0
    kind: str = "sql"

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    def run(
        self, statement: str, values: Mapping[str, Any], seconds: float | None = None, idempotent: bool = False
    ) -> tuple[list[dict[str, Any]], int]:
        """Run a statement in a transaction of its own; return its rows, and the number of rows that it read or wrote.

        `seconds` bounds the statement, as `timeout_seconds` does. Raises the failure of a step.
        """
        streams, prepared = self._checked(statement, values)
        limit = self.timeout_seconds if seconds is None else min(seconds, self.timeout_seconds)
        with _failures(), self.engine.connect() as connection:
            self._limit(connection, limit)
            if streams:
                connection = connection.execution_options(stream_results=True, max_row_buffer=100)
            with closing(connection.execute(prepared, dict(values))) as result:
                rows = self._rows(result) if result.returns_rows else []
                count = len(rows) if result.returns_rows else max(result.rowcount, 0)
            if self.read_only:
                connection.rollback()
            else:
                _commit(connection, idempotent)
            return rows, count

    def _checked(self, statement: str, values: Mapping[str, Any]) -> tuple[bool, sqlalchemy.TextClause]:
        """Return whether the rows are read one by one, and the statement with its parameters."""
        match = FIRST_WORD.match(statement)
        word = match[1].lower() if match else ""
        if word not in READING | WRITING | {"with"}:
            expected = ", ".join(sorted(word.upper() for word in READING | WRITING | {"with"}))
            message = f"expected a statement that begins with {expected}, got {statement.strip()[:20]!r}"
            raise PermanentError(message, error_code=INVALID_INPUTS)
        prepared = sqlalchemy.text(statement)
        names = set(prepared.compile().params)
        if missing := sorted(names - values.keys()):
            raise PermanentError(
                f"the statement has :{missing[0]}, which `parameters` lacks", error_code=INVALID_INPUTS
            )
        if unused := sorted(values.keys() - names):
            message = f"the statement has no parameter :{unused[0]}"
            raise PermanentError(message, error_code=INVALID_INPUTS)
        return word in READING or (word == "with" and self.read_only), prepared

    def _limit(self, connection: sqlalchemy.Connection, seconds: float) -> None:
        if connection.dialect.name == POSTGRESQL:
            if self.read_only:
                connection.exec_driver_sql("set transaction read only")
            # This query takes the snapshot: from now on the statement cannot make the transaction writable.
            milliseconds = max(1, int(seconds * 1000))
            connection.exec_driver_sql(f"select set_config('statement_timeout', '{milliseconds}', true)")
        elif connection.dialect.name == SQLITE:
            ends, raw = monotonic() + seconds, _raw(connection)
            raw.set_progress_handler(lambda: monotonic() > ends, 10_000)

    def _rows(self, result: sqlalchemy.CursorResult[Any]) -> list[dict[str, Any]]:
        names = list(result.keys())
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise PermanentError(f"two columns are called {twice!r}: name one with AS", error_code="invalid_result")
        rows, size = [], 0
        for row in result:
            values = {name: _value(name, value) for name, value in zip(names, row, strict=True)}
            size += len(json.dumps(values))
            rows.append(values)
            if len(rows) > self.max_rows:
                raise _too_large(f"more than {self.max_rows:,} rows", "max_rows")
            if size > self.max_bytes:
                raise _too_large(f"more than {self.max_bytes:,} bytes of rows", "max_bytes")
        return rows


def _too_large(what: str, key: str) -> PermanentError:
    hint = f"write LIMIT or a narrower condition, or raise {key} of the resource"
    return PermanentError(f"the statement returns {what}", error_code="result_too_large", hint=hint)


def _raw(connection: sqlalchemy.Connection) -> Any:
    return connection.connection.dbapi_connection


def _commit(connection: sqlalchemy.Connection, idempotent: bool) -> None:
    try:
        connection.commit()
    except exc.DBAPIError as error:
        if not _is_lost(error):
            raise
        message = "the connection was lost during the commit"
        if idempotent:
            raise RetryableError(message, error_code=OUTCOME_UNKNOWN) from None
        hint = "set `idempotent: true` if the statement may run twice"
        raise PermanentError(
            f"{message}: the statement may have taken effect", error_code=OUTCOME_UNKNOWN, hint=hint
        ) from None


def _is_lost(error: exc.DBAPIError) -> bool:
    state = sqlstate(error)
    return error.connection_invalidated or (state or "08").startswith(("08", "57P"))


@contextmanager
def _failures() -> Iterator[None]:
    """Turn the errors of the database into failures of a step, which show neither statements nor parameters."""
    try:
        yield
    except exc.TimeoutError:
        raise RetryableError("no connection of the pool is free", error_code="pool_exhausted") from None
    except exc.DBAPIError as error:
        raise _failure(error) from None
    except (exc.ArgumentError, exc.StatementError) as error:
        raise PermanentError(f"invalid statement: {_message(error)}", error_code=INVALID_INPUTS) from None
    except (TypeError, ValueError, OverflowError) as error:  # a value that the driver cannot pass on
        raise PermanentError(f"invalid parameter: {error}", error_code=INVALID_INPUTS) from None


def _failure(error: exc.DBAPIError) -> Exception:
    state, message = sqlstate(error), _message(error)
    if state is None:
        return _failure_without_state(error, message)
    shown = f"{message} ({state})"
    if state in ("28000", "28P01"):
        return AuthenticationError(shown, error_code=state)
    if state.startswith("57P"):  # the server ended the session, or is starting or stopping
        return RetryableError(shown, error_code="not_connected")
    if state in RETRIED or state.startswith(RETRIED_CLASSES):
        return RetryableError(shown, error_code=state)
    if state.startswith("23"):
        return PermanentError(shown, error_code="constraint")
    hint = "set read_only = false in the table of the resource" if state == "25006" else None
    return PermanentError(shown, error_code=state, hint=hint)


def _failure_without_state(error: exc.DBAPIError, message: str) -> Exception:
    if isinstance(error, exc.IntegrityError):
        return PermanentError(message, error_code="constraint")
    if isinstance(error, exc.DataError | exc.NotSupportedError | exc.ProgrammingError | exc.InterfaceError):
        return PermanentError(message, error_code="sql_error")
    name = str(getattr(error.orig, "sqlite_errorname", ""))
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_INTERRUPT")):
        return RetryableError(message, error_code=name)
    if name:
        hint = "set read_only = false in the table of the resource" if name == "SQLITE_READONLY" else None
        return PermanentError(message, error_code=name, hint=hint)
    if "password authentication failed" in message:  # psycopg has no code for a refused connection
        return AuthenticationError(message, error_code="28P01")
    return RetryableError(message, error_code="not_connected")


def _message(error: exc.SQLAlchemyError) -> str:
    """Return the first line of what the database says; details may have values of rows."""
    original = getattr(error, "orig", None)
    primary = getattr(getattr(original, "diag", None), "message_primary", None)
    text = primary or str(original or (error.args[0] if error.args else error))
    return text.strip().partition("\n")[0] or type(error).__name__


def _value(name: str, value: Any) -> Any:
    """Return a value of a row as JSON. Raises `PermanentError` for a type that has no form there."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float | Decimal):
        if isfinite(value):
            return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else float(value)
        raise PermanentError(f"the column {name!r} has the value {value}", error_code="invalid_result")
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, list | tuple):
        return [_value(name, item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _value(name, item) for key, item in value.items()}
    message = f"the column {name!r} has the type {type(value).__name__}: cast it to text in the statement"
    raise PermanentError(message, error_code="invalid_result")


def make_sql(settings: Mapping[str, Any]) -> SqlResource:
    """Make the resource of a table. Raises `ConfigurationError`; the database is reached by the first statement."""
    refuse_unknown("sql", settings)
    read_only = flag_of(settings, "read_only", True)
    url = _url(settings.get("url"))
    if read_only and url.get_backend_name() not in (POSTGRESQL, SQLITE):
        message = f"read_only: {url.get_backend_name()} has no transactions that are certainly read-only"
        raise ConfigurationError(message, hint="use a role that may only read, and write read_only = false")
    seconds = number_of(settings, "timeout_seconds", 30)
    engine = _engine(url, int(number_of(settings, "connections", 5)), seconds)
    own = flag_of(settings, "engine_database", False)
    _watch(engine, read_only, refuses_engine=not own)
    return SqlResource(
        engine,
        read_only,
        int(number_of(settings, "max_rows", 1000)),
        int(number_of(settings, "max_bytes", 1024 * 1024)),
        seconds,
    )


def _url(value: Any) -> sqlalchemy.URL:
    try:
        url = sqlalchemy.make_url(revealed(value))
    except exc.ArgumentError:
        raise ConfigurationError("url: expected a URL of SQLAlchemy, such as postgresql://user@host/database") from None
    return url.set(drivername="postgresql+psycopg") if url.drivername in ("postgresql", "postgres") else url


def _engine(url: sqlalchemy.URL, connections: int, seconds: float) -> sqlalchemy.Engine:
    # With a threshold of 0 psycopg prepares every statement, and PostgreSQL prepares one statement at a time only.
    arguments = {"prepare_threshold": 0, "connect_timeout": 10} if url.drivername == "postgresql+psycopg" else {}
    try:
        return sqlalchemy.create_engine(
            url,
            connect_args=arguments,
            poolclass=sqlalchemy.QueuePool,
            pool_size=connections,
            max_overflow=0,
            pool_timeout=seconds,
            pool_pre_ping=True,
            hide_parameters=True,
        )
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"url: the driver needs {error.name!r}", hint=f"pip install {error.name}") from None
    except exc.SQLAlchemyError as error:
        raise ConfigurationError(f"url: {_message(error)}") from None


def _watch(engine: sqlalchemy.Engine, read_only: bool, refuses_engine: bool) -> None:
    """Prepare each new connection, and undo what a statement may have set in its session."""
    if engine.dialect.name == SQLITE:

        @sqlalchemy.event.listens_for(engine, "connect")
        def limit(raw: Any, _: Any) -> None:
            if read_only:
                raw.execute("pragma query_only = on")
            raw.set_authorizer(lambda action, *_: 1 if action in DENIED_IN_SQLITE else 0)

    if engine.dialect.name == POSTGRESQL:

        @sqlalchemy.event.listens_for(engine, "connect")
        def refuse(raw: Any, _: Any) -> None:
            if refuses_engine and _has_engine(raw):
                message = "the database is one of Tasker, whose tables the role may use"
                hint = "use a role without rights on the schema tasker, or write engine_database = true"
                raise PermanentError(message, error_code="engine_database", hint=hint)

        if not read_only:  # what a statement that is rolled back has set is undone with it

            @sqlalchemy.event.listens_for(engine, "reset")
            def reset(raw: Any, _: Any, state: Any) -> None:
                if not state.terminate_only:
                    raw.rollback()
                    raw.execute("reset all")
                    raw.execute("reset session authorization")
                    raw.commit()


def _has_engine(raw: Any) -> bool:
    query = "select has_schema_privilege(oid, 'usage') from pg_namespace where nspname = 'tasker'"
    row = raw.execute(query).fetchone()
    raw.rollback()
    return bool(row and row[0])


class RunStatement(BuiltinHandler):
    """Runs a statement on a resource of the kind `sql`. It runs in a thread."""

    handler_name = SQL
    step = BUILTIN[SQL]

    def call(self, context: StepContext) -> StepHandlerResult:
        """Return the rows, and how many the statement has read or written."""
        inputs = self.inputs(context)
        resource = context.resource(inputs["resource"])
        if not isinstance(resource, SqlResource):
            raise PermanentError(f"the resource `{inputs['resource']}` is not of the kind sql")
        lists = resource.engine.dialect.name == POSTGRESQL
        values = {name: _bound(value, lists) for name, value in inputs.get("parameters", {}).items()}
        idempotent = inputs.get("idempotent", False)
        rows, count = resource.run(inputs["statement"], values, seconds_left(context), idempotent)
        return self.success({"rows": rows, "count": count})


def _bound(value: Any, lists: bool) -> Any:
    """Return a value as the driver takes it: mappings as JSON; lists as arrays where there are any."""
    if isinstance(value, str) and "\0" in value:
        raise PermanentError("a parameter contains a NUL character", error_code=INVALID_INPUTS)
    if isinstance(value, Sequence) and not isinstance(value, str):
        if lists and not any(isinstance(item, Mapping | list) for item in value):
            return [_bound(item, lists) for item in value]
        return json.dumps(value)
    return json.dumps(value) if isinstance(value, Mapping) else value


@hookimpl
def tasker_handlers() -> list[type[BuiltinHandler]]:
    """Return the handler."""
    return [RunStatement]
