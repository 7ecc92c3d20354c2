"""Log lines of an outage: one when it begins, one when it ends, with its duration."""

from __future__ import annotations

import logging

import pytest

from tasker.errors import BackendUnavailable, DatabaseError, DatabaseUnavailable
from tasker.resilience.outage import QUIET_SECONDS, Failing, Outage

LOG = logging.getLogger("tasker.outage.test")


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    said = [(record.levelname, record.message) for record in caplog.records if record.name == LOG.name]
    caplog.clear()
    return said


def test_an_outage_is_logged_once_and_its_end_with_its_duration(caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    outage = Outage("database_lost", "database_back", LOG, lambda: now)
    outage.answered()
    for began in (99.0, 101.0, 102.0):  # the first call began before another one was answered
        outage.failed(DatabaseUnavailable("no\nroute"), began)
    assert lines(caplog) == [("WARNING", "database_lost no route; trying again until it answers")]

    now = 104.5
    for _ in range(2):
        outage.answered()
    assert lines(caplog) == [("WARNING", "database_back after_s=3.5")]

    outage.failed(BackendUnavailable("wrong password", retryable=False), now)
    assert lines(caplog) == [("ERROR", "database_lost wrong password; trying again, although that cannot help")]


def test_a_server_that_refuses_statements_is_back_when_none_was_refused_for_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 100.0
    outage = Outage("database_lost", "database_back", LOG, lambda: now)
    outage.refused(DatabaseUnavailable("read-only"))
    now += QUIET_SECONDS - 1
    outage.answered()
    assert outage.is_on
    now += 1
    outage.answered()
    assert not outage.is_on
    assert len(lines(caplog)) == 2


def test_repeated_work_logs_each_cause_once_and_its_recovery_once(caplog: pytest.LogCaptureFixture) -> None:
    sweep = Failing("sweep", LOG)
    sweep.succeeded()
    for cause in ("full", "full", "denied"):
        sweep.failed(DatabaseError(cause))
    sweep.failed(DatabaseUnavailable("gone"))  # an outage has its own lines
    for _ in range(2):
        sweep.succeeded()

    again = "it is tried again until it succeeds"
    assert lines(caplog) == [
        ("WARNING", f"sweep_failed reason=full; {again}"),
        ("WARNING", f"sweep_failed reason=denied; {again}"),
        ("WARNING", "sweep_recovered"),
    ]
