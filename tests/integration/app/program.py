"""What a program brings along: a template, its handler, connections of its own; and what a submission leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import sqlalchemy
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from tasker.step_handler import inputs, step_handler

TEMPLATE = """
name: greeting
namespace: caller
version: 1.0.0
input_schema: {type: object, required: [name], properties: {name: {type: string}}}
steps:
  - {name: greet, handler: greet}
"""
TABLES = ("tasks", "task_details", "workflow_steps", "task_transition_log", "step_transition_log")
INSERT = "insert into orders values (1)"


@step_handler("greet")
@inputs("name")
def greet(name: str) -> dict[str, str]:
    return {"text": f"Hello, {name}!"}


def of_sqlalchemy(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


def value(url: str, statement: str) -> Any:
    """The first value of the first row, read on a connection of its own."""
    with psycopg.connect(url) as connection:
        row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return row[0]


def count(url: str, table: str) -> int:
    return int(value(url, f"select count(*) from {table}"))


def traces(url: str) -> dict[str, int]:
    """What submissions left, by table; the queue's too."""
    found = {table: count(url, f"tasker.{table}") for table in TABLES}
    if value(url, "select to_regclass('pgmq.q_worker_caller_queue') is not null"):
        found["queue"] = count(url, "pgmq.q_worker_caller_queue")
    return {name: number for name, number in found.items() if number}


# Ways to open a transaction: what is submitted in, and an insert of the program's own in the same transaction.


@contextmanager
def in_connection(engine: sqlalchemy.Engine) -> Iterator[tuple[Any, Any]]:
    with engine.connect() as connection:
        yield connection, lambda: connection.exec_driver_sql(INSERT)


@contextmanager
def in_session(engine: sqlalchemy.Engine) -> Iterator[tuple[Any, Any]]:
    with Session(engine) as session:
        yield session, lambda: session.execute(sqlalchemy.text(INSERT))


@contextmanager
def in_scoped_session(engine: sqlalchemy.Engine) -> Iterator[tuple[Any, Any]]:
    session = scoped_session(sessionmaker(engine))
    try:
        yield session, lambda: session.execute(sqlalchemy.text(INSERT))
    finally:
        session.remove()


@contextmanager
def in_psycopg(engine: sqlalchemy.Engine) -> Iterator[tuple[Any, Any]]:
    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url) as connection:
        yield connection, lambda: connection.execute(INSERT)
