"""What handlers log, print and report while they run, on its way to the database."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tasker.db.connection import DataRefused
from tasker.errors import DatabaseUnavailable
from tasker.execution.report_buffer import (
    CAPACITY,
    LARGEST_FIELDS,
    LEFT_OUT,
    LONGEST_MESSAGE,
    AttemptReporter,
    ReportBuffer,
    storable,
)
from tasker.execution.report_writer import ReportWriter
from tasker.handlers.claims import Claim
from tasker.handlers.reporting import LONGEST, progress_report
from tasker.logging.current_step import LogLine, ProgressReport, reporter
from tasker.logging.step_log import CapturedPrints, StepLog, StepLogHandler, capture_logs
from tasker.types import StepContext
from tests.unit.execution.bench import PATIENCE, make_bench
from tests.unit.execution.modes import child_handlers

CLAIM = Claim("step", "task", "charge", 1, 0, "shop", 7, 1, 3, "correlation")


class Store:
    """An engine that is told what to keep, and may be away."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.away = False
        self.refuses: Exception | None = None
        """Raised for what says "odd"."""

    async def read(self, function: str, args: Any) -> dict[str, Any]:
        assert function == "report"
        if self.away:
            raise DatabaseUnavailable("gone")
        if self.refuses and any(each["message"] == "odd" for each in [*args["lines"], *args["progress"]]):
            raise self.refuses
        self.told.append(args)
        return {}


async def written(buffer: ReportBuffer) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    store = Store()
    await ReportWriter(buffer, store).write()  # type: ignore[arg-type]
    return [line for each in store.told for line in each["lines"]], [p for each in store.told for p in each["progress"]]


def line(message: str, level: int = logging.INFO, fields: Any = None) -> LogLine:
    return LogLine(0.0, level, "here", message, fields)


async def test_lines_of_a_kept_level_are_numbered_and_the_last_that_is_kept_says_so() -> None:
    buffer = ReportBuffer(logging.INFO, 3)
    to = buffer.of(CLAIM)
    to.log(line("not kept", logging.DEBUG))
    for n in range(5):
        to.log(line(f"line {n}"))

    lines, _ = await written(buffer)

    assert [(each["number"], each["step"], each["token"], each["attempt"]) for each in lines] == [
        (n, "step", 7, 1) for n in (1, 2, 3)
    ]
    assert [each["message"] for each in lines[:2]] == ["line 0", "line 1"]
    assert "3 are kept (worker.execution.kept_log_lines)" in lines[2]["message"]


async def test_without_a_level_no_lines_are_kept_and_progress_is() -> None:
    buffer = ReportBuffer(None, 10)
    to = buffer.of(CLAIM)
    to.log(line("x", logging.ERROR))
    to.printed("x\n")
    to.flush()
    to.progress(ProgressReport(0.1))
    to.progress(ProgressReport(0.5, message="half"))

    lines, (progress,) = await written(buffer)

    assert lines == []
    assert (progress["fraction"], progress["message"], progress["token"]) == (0.5, "half", 7)


async def test_prints_become_lines_when_they_end_or_their_handler_does() -> None:
    buffer = ReportBuffer(logging.INFO, 10)
    to = buffer.of(CLAIM)
    for text in ("a", " b", "\n", "c\r\nd", " e"):
        to.printed(text)
    to.flush()
    to.flush()

    lines, _ = await written(buffer)

    assert [each["message"] for each in lines] == ["a b", "c", "d e"]
    assert {each["logger"] for each in lines} == {"stdout"}


async def test_what_the_database_would_refuse_is_replaced_and_what_is_too_long_is_cut() -> None:
    buffer = ReportBuffer(logging.INFO, 10)
    to = buffer.of(CLAIM)
    to.log(line("a\0b\udc80"))
    to.log(line("x" * (LONGEST_MESSAGE + 5)))
    to.log(line("", fields={"a": object()}))
    to.log(line("", fields={"a": "x" * LARGEST_FIELDS}))
    to.log(line("", fields={"a": 1}))

    lines, _ = await written(buffer)

    assert lines[0]["message"] == "a\N{REPLACEMENT CHARACTER}b?"
    assert lines[1]["message"].endswith("x... (5 characters more)")
    assert [each["fields"] for each in lines[2:]] == [LEFT_OUT, LEFT_OUT, {"a": 1}]


async def test_a_line_is_as_it_was_said_whatever_becomes_of_its_fields() -> None:
    buffer = ReportBuffer(logging.INFO, 10)
    to = buffer.of(CLAIM)
    found: dict[str, Any] = {"ids": []}
    for n in range(3):
        found["ids"].append(n)
        to.log(line("so far", fields={"found": found}))
    found["ids"].append({1, 2})

    lines, _ = await written(buffer)

    assert [each["fields"]["found"]["ids"] for each in lines] == [[0], [0, 1], [0, 1, 2]]


@pytest.mark.parametrize("fields", [{"n": Counter(a=2)}, Counter(a=2)])
async def test_fields_of_odd_types_are_kept_as_plain_ones(fields: Any) -> None:
    assert type(storable(line("", fields=fields)).fields) is dict
    assert {type(each) for each in (storable(line("", fields=fields)).fields or {}).values()} <= {dict, int}


@pytest.mark.parametrize("at", [float("nan"), float("inf"), -1e300, -1e12, 1e300])
async def test_a_time_that_is_none_is_now_and_a_level_fits(at: float) -> None:
    kept = storable(LogLine(at, 40_000, "here", "x"))

    assert 0 <= kept.at <= time.time()
    assert kept.level == 32_767


@pytest.mark.parametrize("error", [DataRefused("smallint out of range"), TypeError("no JSON")])
async def test_what_is_refused_is_dropped_and_counted_and_costs_nothing_else(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    buffer, store = ReportBuffer(logging.INFO, 100), Store()
    store.refuses, to = error, buffer.of(CLAIM)
    for n in range(20):
        to.log(line("odd" if n in (3, 11) else f"line {n}"))
    to.progress(ProgressReport(0.5))
    buffer.of(replace(CLAIM, step_uuid="other")).progress(ProgressReport(0.1, message="odd"))

    await ReportWriter(buffer, store).write()  # type: ignore[arg-type]

    stored = [each["message"] for told in store.told for each in told["lines"]]
    assert stored == [f"line {n}" for n in range(20) if n not in (3, 11)]
    assert [each["fraction"] for told in store.told for each in told["progress"]] == [0.5]
    assert buffer.dropped == 2
    assert caplog.text.count("step_report_refused") == 3
    assert "step_logs_dropped lines=2" in caplog.text
    assert buffer.take(10).lines == []


async def test_what_cannot_be_stored_comes_again_in_order_and_newer_progress_wins() -> None:
    buffer, store = ReportBuffer(logging.INFO, 10), Store()
    writer, to = ReportWriter(buffer, store), buffer.of(CLAIM)  # type: ignore[arg-type]
    to.log(line("first"))
    to.progress(ProgressReport(0.1))
    store.away = True
    with pytest.raises(DatabaseUnavailable):
        await writer.write()
    to.log(line("second"))
    to.progress(ProgressReport(0.2))
    store.away = False

    await asyncio.wait_for(buffer.filled(), PATIENCE)
    await writer.write()

    (told,) = store.told
    assert [each["message"] for each in told["lines"]] == ["first", "second"]
    assert [each["fraction"] for each in told["progress"]] == [0.2]


async def test_lines_beyond_what_fits_are_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    buffer = ReportBuffer(logging.INFO, 2 * CAPACITY)
    to = buffer.of(CLAIM)
    for _ in range(CAPACITY + 3):
        to.log(line("x"))

    assert buffer.dropped == 3
    await written(buffer)
    assert "step_logs_dropped lines=3" in caplog.text


async def test_a_writer_that_waits_writes_what_another_thread_says() -> None:
    buffer, store = ReportBuffer(logging.INFO, 10), Store()
    to = buffer.of(CLAIM)
    writing = asyncio.create_task(ReportWriter(buffer, store, pause_seconds=0).run())  # type: ignore[arg-type]
    await asyncio.sleep(0)

    await asyncio.to_thread(to.log, line("from a thread"))
    async with asyncio.timeout(PATIENCE):
        while not store.told:
            await asyncio.sleep(0)
    writing.cancel()

    assert [each["message"] for each in store.told[0]["lines"]] == ["from a thread"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
async def test_a_copy_of_the_process_keeps_nothing_and_does_not_wait_for_a_lock() -> None:
    buffer = ReportBuffer(logging.INFO, 10)
    to = buffer.of(CLAIM)
    with buffer._lock:
        if (child := os.fork()) == 0:
            to.log(line("copy"))
            to.progress(ProgressReport(0.1))
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


# What people call.


@pytest.fixture
def logging_as_it_was() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    before = root.level, list(root.handlers), sys.stdout, [each.level for each in root.handlers]
    names = ("tasker", "tasker.handlers")
    levels = [logging.getLogger(name).level for name in names]
    for name in names:
        logging.getLogger(name).setLevel(logging.NOTSET)  # a worker that a test has started chooses one for the process
    yield root
    root.setLevel(before[0])
    root.handlers[:], sys.stdout = before[1], before[2]
    for handler, level in zip(before[1], before[3], strict=True):
        handler.setLevel(level)
    for name, level in zip(names, levels, strict=True):
        logging.getLogger(name).setLevel(level)


async def test_in_each_mode_a_handler_s_lines_prints_and_progress_are_kept(logging_as_it_was: logging.Logger) -> None:
    capture_logs()
    bench, buffer = make_bench(), ReportBuffer(logging.INFO, 100)
    for mode in ("async", "thread", "process"):
        handler = child_handlers.SpeaksOnTheLoop if mode == "async" else child_handlers.Speaks
        attempt = bench.attempt(handler, execution=mode)
        await bench.end(replace(attempt, reporter=buffer.of(replace(CLAIM, step_uuid=mode))))
    await bench.runner.close(0)

    lines, progress = await written(buffer)

    modes = ("async", "thread", "process")
    for mode in modes:
        said = [each["message"] for each in lines if each["step"] == mode]
        assert said == ["printed", "logged", "told", "begun"], mode
    assert {each["fields"] and each["fields"]["n"] for each in lines if each["message"] == "told"} == {1}
    assert {(each["step"], each["fraction"]) for each in progress} == {(mode, 0.25) for mode in modes}


def test_what_is_shown_stays_as_it_is(logging_as_it_was: logging.Logger) -> None:
    shown: list[str] = []
    stream = logging.Handler()
    stream.emit = lambda record: shown.append(record.getMessage())  # type: ignore[method-assign]
    logging_as_it_was.handlers[:] = [stream]
    logging_as_it_was.setLevel(logging.WARNING)
    capture_logs()
    capture_logs()

    logging.getLogger("somebody").info("quiet")
    logging.getLogger("somebody").warning("loud")

    assert shown == ["loud"]
    assert not logging.getLogger("tasker.execution").isEnabledFor(logging.INFO), "nothing is made of it"
    assert sum(isinstance(each, StepLogHandler) for each in logging_as_it_was.handlers) == 1
    assert isinstance(sys.stdout, CapturedPrints)
    assert not isinstance(sys.stdout._stream, CapturedPrints)


def test_where_nobody_shows_a_log_a_warning_is_still_shown(
    logging_as_it_was: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    logging_as_it_was.handlers[:] = []
    capture_logs()

    logging.getLogger("somebody").info("quiet")
    logging.getLogger("somebody").warning("loud")

    assert capsys.readouterr().err == "loud\n"


@pytest.mark.parametrize(
    ("given", "fraction"),
    [
        ({"percent": 40}, 0.4),
        ({"percent": 100.0}, 1.0),
        ({"done": 4, "total": 10}, 0.4),
        ({"done": 0, "total": 0}, 1.0),
        ({"done": 4}, None),
        ({"message": "on it"}, None),
    ],
)
def test_progress_is_a_share_where_that_is_known(given: dict[str, Any], fraction: float | None) -> None:
    full = {"percent": None, "done": None, "total": None, "message": None, **given}
    assert progress_report(**full).fraction == fraction


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "expected percent, done or a message"),
        ({"percent": 101}, "at most 100"),
        ({"percent": -1}, "percent must be a number of at least 0, got -1"),
        ({"percent": float("nan")}, "percent must be a number of at least 0, got nan"),
        ({"percent": True}, "percent must be a number of at least 0, got True"),
        ({"percent": 5, "done": 1}, "exclude each other"),
        ({"done": 3, "total": 2}, "at most total 2, got 3"),
        ({"total": 2}, "at most total 2, got None"),
        ({"done": "3"}, "got '3'"),
        ({"done": 10**400}, "got 10000"),
        ({"percent": 10**400}, "got 10000"),
        ({"done": 1, "total": 10**5000}, "total must be a number of at least 0, got int, which cannot be shown"),
    ],
)
def test_progress_that_contradicts_itself_is_refused(given: dict[str, Any], said: str) -> None:
    full = {"percent": None, "done": None, "total": None, "message": None, **given}
    with pytest.raises(ValueError, match=said):
        progress_report(**full)


def test_a_long_message_of_progress_is_cut() -> None:
    message = progress_report(None, None, None, "x\0" * LONGEST).message
    assert message is not None
    assert (len(message), message[:3], message[-3:]) == (LONGEST, "x x", "...")


def test_outside_of_a_worker_reports_go_nowhere() -> None:
    context = StepContext.__new__(StepContext)
    assert reporter.get() is None
    context.report_progress(10)
    context.log.info("x")


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_a_field_may_be_named_as_a_parameter_is(level: str) -> None:
    buffer = ReportBuffer(logging.DEBUG, 10)
    token = reporter.set(AttemptReporter(buffer, CLAIM))
    try:
        getattr(StepLog(), level)("sent", message="hello", self=1)
    finally:
        reporter.reset(token)

    (kept,) = buffer.take(10).lines
    assert (kept.line.message, kept.line.fields) == ("sent", {"message": "hello", "self": 1})
