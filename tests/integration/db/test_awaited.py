"""A process that starts before its database waits for it, says so, and gives up after a time."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tasker.db.database import connect
from tasker.db.embedded import EmbeddedServer
from tasker.db.startup_wait import with_database
from tasker.errors import DatabaseUnavailable
from tests.integration.db.test_connection import free_port
from tests.support.servers.private_postgres import copied
from tests.support.waiting import until


def reach(url: str, seconds: float) -> None:
    with_database(url, seconds, lambda: connect(url).close())


def test_a_database_that_comes_later_is_waited_for(
    tmp_path: Path, cluster: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = EmbeddedServer.start(copied(cluster, tmp_path), settings={"fsync": "off"}, linger_seconds=0)
    url = server.url
    assert server.stop()
    with caplog.at_level(logging.DEBUG, "tasker.process"), ThreadPoolExecutor() as threads:
        caplog.clear()  # of how the database was made
        waiting = threads.submit(reach, url, 120.0)
        until(lambda: "attempt=2" in caplog.text, "two attempts have failed")
        assert not waiting.done()
        server = EmbeddedServer.start(tmp_path, settings={"fsync": "off"}, linger_seconds=0)
        try:
            waiting.result(timeout=60)
        finally:
            server.stop()

    told = [record.getMessage() for record in caplog.records if record.levelno > logging.DEBUG]
    assert len(told) == 2, "one line at the beginning, one at the end"
    assert told[0].startswith("waiting for database 'tasker' on")
    assert told[1].endswith("answered")


def test_waiting_ends_with_a_clear_error(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"postgresql://somebody:secret-word@127.0.0.1:{free_port()}/none"
    with caplog.at_level(logging.WARNING, "tasker.process"), pytest.raises(DatabaseUnavailable) as caught:
        reach(url, 0.2)

    assert caught.value.message.startswith("waited 0.2 seconds in vain for database 'none' on 127.0.0.1")
    assert "common.database.connect_wait_seconds" in str(caught.value.hint)
    assert len(caplog.records) == 1
    assert "secret-word" not in caplog.text + str(caught.value)
    assert capsys.readouterr().out == "", "nothing is printed where a program's output belongs"


def test_what_waiting_does_not_mend_is_an_error_at_once(database_url: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tasker.process"), pytest.raises(DatabaseUnavailable) as caught:
        reach(database_url.replace("tasker_test", "no_such"), 120.0)

    assert "does not exist" in caught.value.message
    assert not caught.value.retryable
    assert caplog.text == ""
