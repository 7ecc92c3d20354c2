"""Databases for tests: fresh, migrated, on the embedded server always and on a second server where there is one.

TASKER_TEST_DATABASE_URL names the second server (a superuser's URL); otherwise one on 127.0.0.1:5432 is used.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import urlsplit

import hypothesis
import psycopg
import pytest

from tasker.db import migrate
from tasker.db.embedded import EmbeddedServer
from tests.support import brokers

VARIABLE = "TASKER_TEST_DATABASE_URL"
LOCAL_URL = "postgresql://postgres@127.0.0.1:5432/postgres"
_numbers = itertools.count(1)

hypothesis.settings.register_profile(  # how fast a machine is, is not what these tests are about
    "tasker", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("tasker")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job: the processes of tests inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server on which tests may create databases."""

    name: str
    url: str

    def url_of(self, database: str) -> str:
        return urlsplit(self.url)._replace(path=f"/{database}").geturl()

    @contextmanager
    def database(self, template: str = "template0") -> Iterator[str]:
        """A new database, dropped at the end; its URL."""
        name = f"tasker_test_{os.getpid()}_{next(_numbers)}"
        with psycopg.connect(self.url, autocommit=True) as admin:
            admin.execute(f"create database {name} template {template}")
            try:
                yield self.url_of(name)
            finally:
                admin.execute(f"drop database {name} with (force)")

    def drop(self, url: str) -> None:
        """Drop a database that a test has made by its URL."""
        with psycopg.connect(self.url, autocommit=True) as admin:
            admin.execute(f"drop database if exists {urlsplit(url).path[1:]} with (force)")


def _second_server() -> str | None:
    if declared := os.environ.get(VARIABLE):
        return declared
    try:
        psycopg.connect(LOCAL_URL, connect_timeout=2).close()
    except psycopg.OperationalError:
        return None
    return LOCAL_URL


SECOND_URL = _second_server()
SERVERS = ["embedded"] + (["server"] if SECOND_URL else [])
ABSENT = f"NOT TESTED on a second PostgreSQL server: none on 127.0.0.1:5432, and {VARIABLE} is not set"


def pytest_report_header() -> str:
    return f"databases: {', '.join(SERVERS)}" if SECOND_URL else f"databases: embedded; {ABSENT}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in [*([] if SECOND_URL else [ABSENT]), *brokers.absent()]:
        terminalreporter.write_line(line, yellow=True, bold=True)


@pytest.fixture(scope="session")
def embedded_folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """One folder for all processes of this test run."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if hasattr(request.config, "workerinput") else base) / "postgres"


@pytest.fixture(scope="session", params=SERVERS)
def server(request: pytest.FixtureRequest, embedded_folder: Path) -> Iterator[Server]:
    """Each server in turn. The embedded one is stopped and removed when the last test process leaves it."""
    if request.param == "server":
        assert SECOND_URL
        yield Server("server", SECOND_URL)
        return
    embedded = EmbeddedServer.start(embedded_folder, settings={"fsync": "off"}, linger_seconds=1)
    yield Server("embedded", urlsplit(embedded.url)._replace(path="/postgres").geturl())
    if embedded.stop():
        shutil.rmtree(embedded_folder, ignore_errors=True)


@pytest.fixture(scope="session")
def backend_scripts() -> Sequence[tuple[str, str]]:
    """The SQL of the default messaging backend."""
    (pgmq,) = entry_points(group="tasker.backends", name="pgmq")
    scripts: Sequence[tuple[str, str]] = pgmq.load().create({}).install_sql()
    return scripts


@pytest.fixture(scope="session")
def migrated_template(server: Server, backend_scripts: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The name of a migrated database to copy: much quicker than migrating each."""
    with server.database() as url:
        migrate.upgrade(url, backend_scripts)
        yield urlsplit(url).path[1:]


@pytest.fixture
def empty_database_url(server: Server) -> Iterator[str]:
    """A database of its own, without the schema."""
    with server.database() as url:
        yield url


@pytest.fixture
def database_url(server: Server, migrated_template: str) -> Iterator[str]:
    """A migrated database of its own for one test."""
    with server.database(migrated_template) as url:
        yield url


@pytest.fixture(scope="module")
def module_database_url(server: Server, migrated_template: str) -> Iterator[str]:
    """A migrated database shared by the tests of one module, which must tell their data apart."""
    with server.database(migrated_template) as url:
        yield url


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Real processes on the second server as well are for `make test-chaos`: they take minutes, and it is the SQL that
    depends on the server's version, which every other test runs on both."""
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if parameters.get("server") == "server" and "acceptance" in item.path.parts and item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.long)
