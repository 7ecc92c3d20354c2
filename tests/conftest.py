"""Databases for tests: fresh, migrated, on the embedded server always and on a second server where there is one.

TASKER_TEST_DATABASE_URL names the second server (a superuser's URL); otherwise one is started privately from the
system's PostgreSQL.
"""

from __future__ import annotations

import fcntl
import gc
import logging
import os
import signal
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import hypothesis
import pytest

from tasker.db import migrate
from tasker.db.embedded import EmbeddedServer
from tasker.known_secrets import KNOWN, KnownSecrets
from tasker.messaging import load_backend
from tests.support.kept_connections import KeptConnections
from tests.support.laboratory import Laboratory
from tests.support.order import waiting_first
from tests.support.servers import brokers, browser
from tests.support.servers.databases import Server
from tests.support.servers.private_postgres import make_cluster
from tests.support.servers.run_folder import run_folder
from tests.support.servers.second_server import THROWN_AWAY, programs, second_server

VARIABLE = "TASKER_TEST_DATABASE_URL"
os.environ["XDG_CONFIG_HOME"] = os.devnull  # the profiles of whoever runs the tests are not theirs

hypothesis.settings.register_profile(  # how fast a machine is, is not what these tests are about
    "tasker", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("tasker")

gc.disable()  # until everything has been collected
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job: the processes of tests inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


SECOND_URL = os.environ.get(VARIABLE)
SECOND_PROGRAMS = programs()
BY_DEFAULT = "not long and not servers"
"""Marks of the tests that `make test` leaves out, as in pyproject.toml."""
SERVERS = ["embedded"] + (["server"] if SECOND_URL or SECOND_PROGRAMS else [])
ABSENT = f"NOT TESTED on a second PostgreSQL server: none is installed, and {VARIABLE} is not set"
VARYING = (
    "contract",
    "integration/db",
    "integration/engine/test_",
    "integration/engine/explain",
    "integration/engine/machine",
    "integration/engine/protocol/messages/test_end_notices",
    "integration/engine/protocol/sweeping/test_storms",
    "integration/engine/protocol/sweeping/test_sweeps",
    "integration/engine/protocol/test_pause",
    "integration/engine/protocol/test_queue_pauses",
)
"""What the server's version may change runs on both servers each time: connections, migrations, the schema, plans
of queries, calls of the engine's functions, and the tests of what it does not do."""
LONG_THERE = ("integration/engine/test_growth", "integration/engine/machine/test_machine")
"""Of these, what takes as long as all the others together: growth of queries, and the rule machine."""

IN_FRONT = (
    "integration/api/test_access",
    "integration/api/test_description",
    "integration/api/test_documentation",
    "integration/api/test_errors",
    "integration/api/test_options",
    "integration/api/test_published",
    "integration/http_client",
    "integration/two_transports",
    "integration/web/",
)
"""What differs in Python alone runs on the embedded server: shapes of requests and answers, who may ask, pages, and one
command over two transports. They ask the database by functions of the engine, whose tests run on both servers, and by
named queries, which both servers are shown (integration/db/test_queries.py)."""
TOLD_OUTSIDE = (
    "acceptance/fleet/test_process_ports",
    "acceptance/fleet/test_server",
    "acceptance/test_feed",
    "acceptance/test_log",
    "acceptance/test_plugins",
    "acceptance/test_scraped_fleet",
    "acceptance/test_spans_of_a_fleet",
    "acceptance/test_webhooks",
    "docs/test_moving",
    "docs/test_writing_plugins",
    "docs/test_your_project",
)
"""What several processes tell the outside, and what wheels bring: `make test` asks the same of one process, or of the
checkout, and leaves these to `make test-servers`. They mostly start processes, and cost it a tenth of its time. Whether
tasks survive what happens to processes it asks each time."""
SERVED = ("contract", "integration", "acceptance", "docs", "web")
"""Where `make test-servers` looks for tests: what is elsewhere, `make test` runs on both servers."""


def pytest_report_header() -> str:
    return f"databases: {', '.join(SERVERS)}" if len(SERVERS) > 1 else f"databases: embedded; {ABSENT}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in [*([] if len(SERVERS) > 1 else [ABSENT]), *brokers.absent(), *browser.absent()]:
        terminalreporter.write_line(line, yellow=True, bold=True)


@pytest.fixture(scope="session")
def servers_folder() -> Iterator[Path]:
    """One folder for the servers of this test run; removed when its last process leaves it."""
    with run_folder(os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))) as folder:
        yield folder


@pytest.fixture(scope="session")
def embedded_folder(servers_folder: Path) -> Path:
    """Where the embedded server's data are."""
    return servers_folder / "embedded"


@pytest.fixture(scope="session")
def cluster(servers_folder: Path) -> Path:
    """A PostgreSQL cluster for `copied`."""
    return make_cluster(servers_folder / "cluster")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each server in turn: an item that `make test` would leave out costs each tester as much as one that it runs."""
    chosen = any(mark.args[0] == "server" for mark in metafunc.definition.iter_markers("parametrize"))
    if "server" in metafunc.fixturenames and not chosen:
        path, left_out = metafunc.definition.path, metafunc.config.option.markexpr == BY_DEFAULT
        again = not _below(path, IN_FRONT) and not (left_out and _is_left_to_servers(path))
        metafunc.parametrize("server", SERVERS if again else SERVERS[:1], indirect=True, scope="session")


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest, servers_folder: Path, embedded_folder: Path) -> Iterator[Server]:
    """One of `SERVERS`."""
    with ThreadPoolExecutor(max_workers=1) as cleaner:
        if request.param == "embedded":
            embedded = EmbeddedServer.start(embedded_folder, settings=THROWN_AWAY, linger_seconds=1)
            yield Server("embedded", urlsplit(embedded.url)._replace(path="/postgres").geturl(), cleaner)
            embedded.stop()
        else:
            assert SECOND_URL or SECOND_PROGRAMS
            url = SECOND_URL or second_server(servers_folder, SECOND_PROGRAMS)
            yield Server("server", url, cleaner)


@pytest.fixture(scope="session")
def backend_scripts() -> Sequence[tuple[str, str]]:
    """The SQL of the default messaging backend."""
    scripts: Sequence[tuple[str, str]] = load_backend("pgmq", {}).install_sql()
    return scripts


@pytest.fixture(scope="session")
def migrated_template(
    server: Server, servers_folder: Path, backend_scripts: Sequence[tuple[str, str]]
) -> Iterator[str]:
    """The name of a migrated database to copy: much quicker than migrating each."""
    if server.url != SECOND_URL:
        yield server.migrated(backend_scripts, servers_folder / f"{server.name}.template.lock")
        return
    with server.database() as url:  # that server outlives the run
        migrate.upgrade(url, backend_scripts)
        yield urlsplit(url).path[1:]


@pytest.fixture
def empty_database_url(server: Server) -> Iterator[str]:
    """A database of its own, without the schema."""
    with server.database() as url:
        yield url


@pytest.fixture
def new_database_url(server: Server, migrated_template: str) -> Iterator[str]:
    """A migrated database of its own for one test."""
    with server.database(migrated_template) as url:
        yield url


@pytest.fixture
def database_url(new_database_url: str) -> str:
    """A migrated database for one test: its own, or one of its folder that others have used before."""
    return new_database_url


@pytest.fixture(scope="module")
def module_database_url(server: Server, migrated_template: str) -> Iterator[str]:
    """A migrated database shared by the tests of one module, which must tell their data apart."""
    with server.database(migrated_template) as url:
        yield url


@pytest.fixture(scope="session")
def laboratory(server: Server, migrated_template: str) -> Iterator[Laboratory]:
    """A migrated database that tests use in turn: its rows are deleted between them."""
    laboratory = Laboratory(lambda: server.database(migrated_template))
    yield laboratory
    laboratory.close()


@pytest.fixture(scope="session")
def kept_connections() -> Iterator[KeptConnections]:
    """Sessions on that database which programs under test use in turn."""
    kept = KeptConnections()
    yield kept
    kept.close()


@pytest.fixture(autouse=True)
def log_settings() -> Iterator[None]:
    """A command tells its child processes by variables how to log, and this one by the levels of loggers, as the
    published bootstrap does; what one test has run tells the next one nothing."""
    before, levels = {name: os.environ.get(name) for name in ("TASKER_LOG_LEVEL", "TASKER_LOG_FORMAT")}, _log_levels()
    yield
    for name, value in before.items():
        os.environ.pop(name, None) if value is None else os.environ.update({name: value})
    for logger in _log_levels().keys() | levels.keys():
        if logger.level != (level := levels.get(logger, logging.NOTSET)):
            logger.setLevel(level)


class _LoopErrors(logging.Handler):
    """Errors of event loops, which only log them: callbacks that raise, exceptions that nobody retrieves."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(self.format(record))


@pytest.fixture(autouse=True)
def loop_errors() -> Iterator[list[str]]:
    """What an event loop has only logged fails the test; one that causes such an error clears the list."""
    handler = _LoopErrors()
    logging.getLogger("asyncio").addHandler(handler)
    yield handler.messages
    logging.getLogger("asyncio").removeHandler(handler)
    assert not handler.messages, "\n".join(handler.messages)


@pytest.fixture(autouse=True)
def known_secrets() -> Iterator[None]:
    """A process searches everything for the secrets that it has read; those of one test are unknown to the next."""
    before = {name: getattr(KNOWN, name) for name in KnownSecrets.__slots__}
    yield
    for name, value in before.items():
        setattr(KNOWN, name, value)


def _log_levels() -> dict[logging.Logger, int]:
    """Of the loggers that have one."""
    loggers = [logging.root, *logging.root.manager.loggerDict.values()]
    return {each: each.level for each in loggers if isinstance(each, logging.Logger) and each.level}


def _below(path: Path, beginnings: Sequence[str]) -> bool:
    """Whether a file is one of those whose paths begin so."""
    text = path.as_posix()
    return any(f"/tests/{beginning}" in text for beginning in beginnings)


def _is_left_to_servers(path: Path) -> bool:
    """Whether `make test` runs the tests of this file on the first server alone."""
    return _below(path, SERVED) and (not _below(path, VARYING) or _below(path, LONG_THERE))


def _carried_elsewhere(item: pytest.Item) -> bool:
    """Whether a broker carries the hints: it knows nothing of the version of PostgreSQL."""
    return _parameters(item).get("backend", "pgmq") != "pgmq"


def _parameters(item: pytest.Item) -> Mapping[str, object]:
    found: Mapping[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    return found


def _is_on_the_second(item: pytest.Item) -> bool:
    return _parameters(item).get("server") == "server"


def _shares_processes(item: pytest.Item) -> bool:
    """Whether it shares a fleet, or a server and a browser, with its module: begun first, it is stolen by nobody who
    would have to start them again."""
    return _below(item.path, ("web/", "acceptance/test_scraped_fleet"))


def _waits(item: pytest.Item) -> bool:
    """Whether it mostly waits for processes, and shares nothing that is made once for its module."""
    shares = _shares_processes(item) or {"docs", "engine"} & {*item.path.parts}
    return item.get_closest_marker("slow") is not None and not shares


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """In a fresh checkout one of several processes compiles a module, and the others, who wait for it, read that."""
    if not isinstance(collector, pytest.File | pytest.Directory):
        return (yield)
    held = os.open(collector.path, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        return (yield)
    finally:
        os.close(held)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """On the second server `make test` runs what its version changes, `make test-servers` the rest but what differs in
    Python alone, and what a fleet tells the outside, `make test-chaos` real processes, which take minutes. Of several
    processes one begins with the second server's tests."""
    for item in items:
        if _below(item.path, TOLD_OUTSIDE):
            item.add_marker(pytest.mark.servers)
        if not _is_on_the_second(item):
            continue
        long_here = "acceptance" in item.path.parts or item.get_closest_marker("servers")
        if long_here and item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.long)
        elif _is_left_to_servers(item.path) or (_below(item.path, SERVED) and _carried_elsewhere(item)):
            item.add_marker(pytest.mark.servers)
    unread = [
        item.nodeid
        for item in items
        if item.get_closest_marker("servers") and not _below(item.path, (*SERVED, "chaos"))
    ]
    if unread:
        raise pytest.UsageError(f"left to `make test-servers`, which does not read their folder: {', '.join(unread)}")
    yield
    if processes := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):
        items.sort(key=lambda item: (not _shares_processes(item), not _is_on_the_second(item)))
        items[:] = waiting_first(items, _waits, processes)


def pytest_collection_finish() -> None:
    """What has been collected lives until the end: the garbage collector need not look through it again and again."""
    gc.enable()
    gc.freeze()
