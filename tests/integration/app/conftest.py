"""A program with a workflow, handlers and an engine of its own, on a database of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy
from sqlalchemy.pool import NullPool

import tasker
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.orchestration.sweep import SweepSettings
from tasker.settings.execution import Sweep
from tasker.template import compile_text
from tasker.template.plan import Plan
from tests.integration.app.program import TEMPLATE, greet, of_sqlalchemy
from tests.support.kept_connections import KeptConnections, lent_database
from tests.support.laboratory import Laboratory


@pytest.fixture
def plan() -> Plan:
    (plan,) = compile_text(TEMPLATE).plans
    return plan


@pytest.fixture
def registry() -> HandlerRegistry:
    registry = HandlerRegistry()
    registry.register("greet", greet)
    return registry


@pytest.fixture
def database_url(laboratory: Laboratory, kept_connections: KeptConnections) -> Iterator[str]:
    """A database that tests use in turn. A test that ends sessions, or counts them, takes `new_database_url`."""
    with lent_database(laboratory, kept_connections) as url:
        yield url


@pytest.fixture
def app(database_url: str, registry: HandlerRegistry) -> Iterator[tasker.SyncApp]:
    with tasker.SyncApp(database_url, registry=registry) as running:
        yield running


@pytest.fixture
def memory_app(database_url: str, registry: HandlerRegistry) -> Iterator[tasker.SyncApp]:
    """With a backend that sends after the commit, and sweeps that find no lost hint: what is not sent never runs."""
    blind = SweepSettings(Sweep(hint_grace_ms=3_600_000))
    with tasker.SyncApp(database_url, registry=registry, backend="memory", sweeps=blind) as running:
        yield running


@pytest.fixture
def engine(database_url: str) -> Iterator[sqlalchemy.Engine]:
    """The program's own engine, on the same database."""
    engine = sqlalchemy.create_engine(of_sqlalchemy(database_url), poolclass=NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("create table orders (id int primary key)")
    yield engine
    engine.dispose()
