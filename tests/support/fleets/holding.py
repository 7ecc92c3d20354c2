"""Writes that a lock holds in the middle, so that a test can harm whoever makes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from tests.support.fleets.oracle import Oracle


@contextmanager
def held(url: str, table: str) -> Iterator[psycopg.Connection]:
    """Nobody writes to the table meanwhile."""
    with psycopg.connect(url) as connection:
        connection.execute(f"lock table {table} in share mode")
        yield connection
        connection.rollback()


def waiting(oracle: Oracle, table: str) -> list[int]:
    """The server's processes that wait for the table."""
    query = "select pid from pg_locks where relation = %s::regclass and not granted"
    return [pid for (pid,) in oracle.rows(query, table)]


def drop_writes(oracle: Oracle, pids: list[int]) -> None:
    """End these processes of the server, and with them what they were writing."""
    oracle.rows("select pg_terminate_backend(pid, 10000) from unnest(%s::int[]) pid", pids)
