"""A database and a role may set anything: the sessions of Tasker have what they need, those of a caller their own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

import tasker
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import depends_on, inputs, step_handler
from tasker.template import compile_text
from tests.support.command_line import invoke
from tests.support.servers.databases import Server

TEMPLATE = """
name: order
namespace: inherited
version: 1.0.0
identity_strategy: always_unique
steps:
  - name: price
    handler: inherited.price
    retry: {max_attempts: 3, backoff_base_ms: 10}
  - name: note
    handler: inherited.note
    dependencies: [price]
"""
INPUT = {
    "name": "Zoë, 5 €, 日本\\n\\\\",
    "amount": 0.1 + 0.2,
    "many": 12345678901234567890,
    "at": "2026-03-01T12:00:00+05:30",
}
SETTINGS = {
    "client_encoding": "latin1",
    "DateStyle": "SQL, DMY",
    "IntervalStyle": "sql_standard",
    "TimeZone": "Asia/Kolkata",
    "timezone_abbreviations": "India",
    "default_transaction_deferrable": "on",
    "client_connection_check_interval": "10ms",
    "jit": "on",
    "jit_above_cost": "0",
    "jit_inline_above_cost": "0",
    "search_path": "nowhere",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
    "standard_conforming_strings": "off",
    "escape_string_warning": "off",
    "backslash_quote": "off",
    "array_nulls": "off",
    "transform_null_equals": "on",
    "quote_all_identifiers": "on",
    "client_min_messages": "debug5",
    "check_function_bodies": "off",
    "default_tablespace": "pg_default",
    "default_toast_compression": "pglz",
    "default_text_search_config": "pg_catalog.german",
    "gin_fuzzy_search_limit": "1",
    "row_security": "off",
    "xmloption": "document",
    "synchronous_commit": "off",
    "work_mem": "64kB",
    "temp_buffers": "800kB",
    "join_collapse_limit": "1",
    "from_collapse_limit": "1",
    "plan_cache_mode": "force_generic_plan",
    "enable_indexscan": "off",
    "enable_hashjoin": "off",
    "enable_nestloop": "off",
    "constraint_exclusion": "on",
    "max_parallel_workers_per_gather": "0",
    "parallel_setup_cost": "0",
    "plpgsql.extra_errors": "all",
    "plpgsql.variable_conflict": "use_column",
    "lc_numeric": "C",
    "log_statement_stats": "off",
}
AT_HOME = "-c statement_timeout=0 -c lock_timeout=0 -c idle_session_timeout=0 -c client_min_messages=warning"
LIMITS = {
    "default_transaction_isolation": "serializable",
    "statement_timeout": "1ms",
    "lock_timeout": "1ms",
    "idle_in_transaction_session_timeout": "1ms",
    "idle_session_timeout": "50ms",
}
"""In a session of a caller's these are for the caller to choose."""
GROUPS = [*(dict([*SETTINGS.items()][first : first + 6]) for first in range(0, len(SETTINGS), 6)), LIMITS]


def inherited(url: str, **settings: str) -> None:
    """Set these, and nothing else, for the database and for the role in it, which counts above."""
    with psycopg.connect(url, autocommit=True, options=AT_HOME) as admin:
        database = f"database {admin.info.dbname}"
        for target in (database, f"role {admin.info.user} in {database}"):
            admin.execute(f"alter {target} reset all".encode())
            for name, value in settings.items():
                admin.execute(f"alter {target} set {name} to {value if ',' in value else repr(value)}".encode())


_failed: set[str] = set()


@step_handler("inherited.price")
@inputs("name", "amount", "many", "at")
def price(name: str, amount: float, many: int, at: str, context: Any) -> dict[str, Any]:
    if context.task_uuid not in _failed:
        _failed.add(context.task_uuid)
        raise tasker.RetryableError("ü → again, 5 €")
    return {"name": name, "amount": amount, "many": many, "at": at}


@step_handler("inherited.note")
@depends_on(price="price")
def note(price: dict[str, Any]) -> dict[str, Any]:
    return {"for": price["name"]}


@asynccontextmanager
async def started(url: str) -> AsyncIterator[tasker.App]:
    registry = HandlerRegistry()
    registry.register("inherited.price", price)
    registry.register("inherited.note", note)
    async with tasker.App(url, registry=registry) as app:
        yield app


async def require_that_it_runs(app: tasker.App, task: str) -> None:
    ended = await app.wait(task, timeout=60)
    assert ended.results == {"price": INPUT, "note": {"for": INPUT["name"]}}
    assert {"waiting_for_retry", "complete"} <= {move.to_state for move in await app.tasks.history(task)}


@pytest.mark.parametrize("settings", GROUPS, ids=", ".join)
async def test_task_runs_whatever_the_role_is_set_to(module_database_url: str, settings: dict[str, str]) -> None:
    (plan,) = compile_text(TEMPLATE).plans
    inherited(module_database_url, **settings)
    try:
        async with started(module_database_url) as app:
            await require_that_it_runs(app, (await app.submit(plan, INPUT)).task_uuid)
            if settings is not LIMITS:
                with psycopg.connect(module_database_url) as caller:
                    theirs = await app.submit_in(caller, plan, INPUT)
                await require_that_it_runs(app, theirs.task_uuid)
    finally:
        inherited(module_database_url)


async def test_schema_is_made_and_used_under_all_of_them(empty_database_url: str) -> None:
    (plan,) = compile_text(TEMPLATE).plans
    inherited(empty_database_url, **SETTINGS, **LIMITS)

    async with started(empty_database_url) as app:
        await require_that_it_runs(app, (await app.submit(plan, INPUT)).task_uuid)


@pytest.mark.parametrize("encoding", ["LATIN1", "EUC_JP", "SQL_ASCII"])
def test_database_that_cannot_hold_every_character_is_refused_with_the_reason(server: Server, encoding: str) -> None:
    name = f"of_{encoding.lower()}_{os.getpid()}"
    url = server.url_of(name)
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(f"create database {name} encoding '{encoding}' locale 'C' template template0".encode())
    try:
        refused = invoke("db", "upgrade", database=url)
        with psycopg.connect(url) as connection:
            left = connection.execute("select count(*) from pg_namespace where nspname like 'tasker%'").fetchone()
    finally:
        server.drop(url)

    assert refused.exit_code == 1
    assert f"the encoding of this database is {encoding}" in refused.output
    assert f"create database {name} encoding 'UTF8' template template0" in " ".join(refused.output.split())
    assert left == (0,)
