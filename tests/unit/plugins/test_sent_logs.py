"""The plugin `otel` and the log of the process: what of a line arrives, and what never does."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.proto.logs.v1.logs_pb2 import SeverityNumber
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.resources import Resource

from tasker.logging import log_info
from tasker.logging.current_step import covering
from tasker.logging.format import JsonFormatter
from tasker.logging.lines import TRACE, log_line
from tasker.settings.table import InvalidTable
from tasker_otel import OpenTelemetry
from tasker_otel.logs import LogHandler, LogSender, log_record_of
from tasker_otel.table import OtelTable
from tests.support.servers.span_receiver import ReceivedLine, lines_of, receiving

IDS = {"correlation_id": "c", "task_uuid": "t", "step_uuid": "s", "namespace": "shop"}
PLACE = {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7"}
LOG = logging.getLogger("shop.orders")


class Kept(InMemoryLogRecordExporter):
    """Lines as the SDK sends them, read with the official classes."""

    def lines(self) -> list[ReceivedLine]:
        found = [each for each in self.get_finished_logs() if isinstance(each, ReadableLogRecord)]
        return [*lines_of(encode_logs(found).SerializeToString())]


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> None:
    """From the lowest level on."""
    caplog.set_level(TRACE)


@pytest.fixture
def sent() -> Iterator[Callable[[], list[ReceivedLine]]]:
    """All lines that were sent so far."""
    handler = LogHandler(LogSender(exporter := Kept(), "memory", 1000), Resource({"service.name": "shop"}))

    def lines() -> list[ReceivedLine]:
        handler.sender.flush(60)
        return exporter.lines()

    handler.attach()
    yield lines
    handler.detach()


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., OpenTelemetry]]:
    """The plugin with these settings, which sends lines at once."""
    monkeypatch.setenv("OTEL_BLRP_SCHEDULE_DELAY", "50")
    made = OpenTelemetry()

    def configured(**settings: Any) -> OpenTelemetry:
        made.tasker_configured(OtelTable(**settings))
        return made

    yield configured
    made.tasker_configured(OtelTable())


def of_ours(lines: Sequence[ReceivedLine]) -> list[ReceivedLine]:
    """Without those of libraries, which say what they do at the lowest level."""
    return [line for line in lines if line.logger in (LOG.name, "tasker.handlers")]


def test_a_line_of_a_step_arrives_with_its_phrase_its_fields_and_its_place_in_the_trace(
    sent: Callable[[], list[ReceivedLine]],
) -> None:
    log_line(LOG, logging.INFO, "Step completed: step_uuid=s", {**PLACE, **IDS, "duration_ms": 12, "is_last": True})
    (line,) = of_ours(sent())
    assert (line.logger, line.level, line.severity) == ("shop.orders", "INFO", SeverityNumber.SEVERITY_NUMBER_INFO)
    assert (line.body, line.trace_id, line.span_id) == ("Step completed: step_uuid=s", *PLACE.values())
    assert line.attributes == {**IDS, "duration_ms": 12, "is_last": True}
    assert line.resource == {"service.name": "shop"}


def test_every_level_has_its_severity(sent: Callable[[], list[ReceivedLine]]) -> None:
    levels = (TRACE, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
    for level in levels:
        LOG.log(level, "a line of %s", level)
    named = [SeverityNumber.Name(line.severity).rpartition("_")[2] for line in of_ours(sent())]
    assert named == ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"]


def test_what_a_handler_gives_is_an_attribute_each_and_hides_none_of_ours(
    sent: Callable[[], list[ReceivedLine]],
) -> None:
    log_info("charged", {"items": [1, {"a": None}], "nothing": None, "at": 1.5, "exception.type": "mine"})
    LOG.info("of others", extra={"fields": "no mapping"})
    charged, others = of_ours(sent())
    assert charged.attributes == {"items": '[1, {"a": null}]', "nothing": "null", "at": 1.5, "exception.type": "mine"}
    assert others.attributes == {"fields": "no mapping"}


def test_what_protobuf_refuses_costs_no_batch() -> None:
    """Called by hand: what reports a test does not take halves of characters either."""
    odd = {"large": 2**70, "half \udc80": "\udc80", "nested": ["\udc80"]}
    record = LOG.makeRecord("shop", logging.INFO, "", 0, "half \udc80", (), None, extra={"fields": odd})
    line = log_record_of(record, JsonFormatter().fields_of(record))
    (found,) = lines_of(encode_logs([ReadableLogRecord(line, Resource({}))]).SerializeToString())
    assert (found.body, found.attributes) == (
        "half ?",
        {"large": str(2**70), "half ?": "?", "nested": '["?"]'},
    )


def test_an_exception_has_its_conventional_names(sent: Callable[[], list[ReceivedLine]]) -> None:
    try:
        raise TimeoutError("no answer")
    except TimeoutError:
        LOG.exception("gone")
    (line,) = of_ours(sent())
    assert line.attributes["exception.type"] == "TimeoutError"
    assert line.attributes["exception.stacktrace"].endswith("TimeoutError: no answer")


def test_a_sensitive_value_is_covered_as_on_the_console(
    sent: Callable[[], list[ReceivedLine]], caplog: pytest.LogCaptureFixture
) -> None:
    def cover(fields_of: Any) -> Any:
        if isinstance(fields_of, dict):
            return {name: cover(value) for name, value in fields_of.items()}
        if isinstance(fields_of, list):
            return [cover(each) for each in fields_of]
        return fields_of.replace("4111", "***") if isinstance(fields_of, str) else fields_of

    token = covering.set(cover)
    try:
        log_info("paid", {"card": "4111", "tried": [Secret()]})
        shown = [JsonFormatter().format(record) for record in caplog.records]
    finally:
        covering.reset(token)
    (line,) = of_ours(sent())
    assert "4111" not in f"{line}{shown}"
    assert line.attributes == {"card": "***", "tried": '["card ***"]'}


class Secret:
    """Known by its text alone."""

    def __repr__(self) -> str:
        return "card 4111"


class Chatters(Kept):
    """Says something of each batch, as the SDK, its HTTP client and what they use do."""

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        logging.getLogger("urllib3.connectionpool").debug("POST /v1/logs")
        logging.getLogger("opentelemetry.exporter").warning("sending %s", len(batch))
        return super().export(batch)


def test_what_sending_says_of_itself_is_not_sent_and_the_same_library_elsewhere_is() -> None:
    handler = LogHandler(LogSender(exporter := Chatters(), "memory", 1000), Resource({}))
    handler.attach()
    try:
        logging.getLogger("urllib3.connectionpool").debug("of a handler")
        for _ in range(3):
            handler.sender.flush(60)
    finally:
        handler.detach()
    bodies = [line.body for line in exporter.lines() if line.logger.split(".")[0] in ("urllib3", "opentelemetry")]
    assert bodies == ["of a handler"]


def test_lines_beyond_the_queue_are_lost_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    handler = LogHandler(LogSender(Kept(), "memory", 512), Resource({}))
    handler.sender._told.taken = -500  # as if so many had not left the queue yet
    for number in range(100):
        handler.handle(LOG.makeRecord("shop", logging.INFO, "", 0, f"line {number}", (), None))
    assert handler.sender.lost == 88
    handler.sender.flush(60)
    assert "logs_lost receiver=memory" in caplog.text


def test_the_receiver_of_the_spans_gets_the_log_where_the_settings_say_so(
    plugin: Callable[..., OpenTelemetry], caplog: pytest.LogCaptureFixture
) -> None:
    with receiving() as receiver:
        given = {"endpoint": receiver.endpoint, "headers": "authorization=key", "service_name": "orders"}
        plugin(**given).tasker_process_started()
        (made := plugin(**given, logs="otlp")).tasker_process_started()
        sender = made._logs.sender
        plugin(**given)
        LOG.warning("nobody asks for this")
        sender.flush(60)
    (line,) = [each for each in receiver.lines if each.logger == "tasker.plugins.otel"]
    assert "nobody asks for this" not in [each.body for each in receiver.lines]
    assert (line.body.split()[0], line.resource["service.name"]) == ("Console", "orders")
    assert receiver.headers[0]["authorization"] == "key"
    started = [each for each in caplog.messages if each.startswith("Console logging with OpenTelemetry initialized")]
    assert ["logs_enabled=true" in each for each in started] == [False, True]


def test_a_receiver_that_takes_no_logs_is_told_once_and_the_console_has_all(
    plugin: Callable[..., OpenTelemetry], caplog: pytest.LogCaptureFixture
) -> None:
    with receiving() as receiver:
        receiver.answers[:] = [404] * 100
        sender = plugin(endpoint=receiver.endpoint, logs="otlp")._logs.sender
        for number in range(3):
            LOG.info("line %s", number)
            sender.flush(60)
    assert caplog.text.count("log_receiver_down") == 1
    assert [record.getMessage() for record in caplog.records if record.name == LOG.name] == [
        "line 0",
        "line 1",
        "line 2",
    ]


def test_where_the_sdk_has_no_logs_the_process_works_on_with_its_console_and_says_so(
    plugin: Callable[..., OpenTelemetry], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(sys.modules, "tasker_otel.logs", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk._logs.export", None)
    with receiving() as receiver:
        made = plugin(endpoint=receiver.endpoint, logs="otlp")
    assert made._sender is not None
    fields_of = [record.getMessage() for record in caplog.records if record.name == "tasker.plugins.otel"]
    assert [each.split("=")[0] for each in fields_of] == ["logs_not_sent reason"]


def test_a_program_without_logging_keeps_the_warnings_that_python_shows(
    plugin: Callable[..., OpenTelemetry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    plugin(logs="otlp")
    assert not logging.getLogger().handlers


def test_another_exporter_of_logs_is_refused() -> None:
    with pytest.raises(InvalidTable):
        OtelTable.parse({"logs": "console"})
