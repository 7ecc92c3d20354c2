"""The plugin `otel` and its receiver: what arrives, and one that is away, slow or refuses."""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from tasker.plugins.found import PluginChoice, installed
from tasker.plugins.hook_arguments import TaskFinished
from tasker.plugins.host import plugins_of, ready
from tasker_otel import OpenTelemetry
from tasker_otel.sending import Sender, sender_of
from tasker_otel.spans import Spans
from tasker_otel.table import OtelTable
from tests.support.servers.span_receiver import SpanReceiver, receiving
from tests.support.waiting import until
from tests.unit.plugins.test_tasker_otel import ATTEMPT, TASK, ended

SPANS = Spans()
SDK = logging.getLogger(OTLPSpanExporter.__module__)


@pytest.fixture
def receiver() -> Iterator[SpanReceiver]:
    with receiving() as found:
        yield found


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are sent at once."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")


def span() -> bytes:
    found = SPANS.attempt(ended())
    assert found
    return found


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The first word of each, whoever wrote it."""
    return [record.getMessage().split()[0] for record in caplog.records]


async def test_what_a_process_does_arrives_with_headers_and_the_name_of_the_service(receiver: SpanReceiver) -> None:
    table = OtelTable(
        endpoint=receiver.endpoint,
        headers="authorization=Bearer%20key",
        service_name="shop",
        resource_attributes="deployment.environment.name=staging",
    )
    plugins = plugins_of(PluginChoice(enabled=("otel",), settings={"otel": table}))
    plugins.notify("tasker_attempt_ended", ended(replace(ATTEMPT, step="ä" * 200)))
    plugins.notify("tasker_task_finished", TaskFinished(TASK, "complete"))
    plugins.notify("tasker_process_stopped", None)
    await plugins.settle()
    step, task = sorted(receiver.spans, key=lambda each: each.name, reverse=True)
    assert (step.parent_id, step.attributes["step_name"]) == (task.span_id, "ä" * 200)
    assert task.resource["service.name"] == "shop"
    assert task.resource["deployment.environment.name"] == "staging"
    assert receiver.headers[0]["authorization"] == "Bearer key"


async def test_the_variable_of_the_standard_switches_it_all_off_and_that_is_told(
    receiver: SpanReceiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "True")
    table = OtelTable(endpoint=receiver.endpoint, service_name="switched-off", logs="otlp", detail="all")
    with caplog.at_level("INFO", "tasker.plugins.otel"):
        plugins = plugins_of(PluginChoice(enabled=("otel",), settings={"otel": table}))
    assert caplog.messages == [
        "OpenTelemetry not initialized opentelemetry_enabled=false reason=OTEL_SDK_DISABLED",
    ]
    heard = ("tasker_attempt_ended", "tasker_attempt_trace", "tasker_transitions", "tasker_process_stopped")
    assert [plugins.having(hook) for hook in heard] == [()] * 4
    await plugins.settle()
    assert receiver.headers == []


@pytest.mark.parametrize("kind", ["gzip", "deflate", "none"])
def test_the_variables_of_the_exporter_count(
    receiver: SpanReceiver, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", kind)
    sender = sender_of(OtelTable(endpoint=receiver.endpoint))
    for _ in range(3):
        sender.put(span())
    sender.flush(5)
    assert len(receiver.spans) == 3
    assert receiver.headers[0].get("content-encoding", "none") == kind


def test_a_process_that_traces_says_so_at_its_start(receiver: SpanReceiver, caplog: pytest.LogCaptureFixture) -> None:
    plugin = OpenTelemetry()
    plugin.tasker_configured(OtelTable(endpoint=receiver.endpoint, service_name="orders", share=0.5))
    with caplog.at_level("INFO", "tasker.plugins.otel"):
        plugin.tasker_process_started()
    said = f"otlp_endpoint={receiver.endpoint}/v1/traces service_name=orders sample_rate=0.5"
    phrase = "Console logging with OpenTelemetry initialized opentelemetry_enabled=true logs_enabled=false"
    assert caplog.messages == [f"{phrase} {said}"]


def test_a_receiver_that_is_away_is_told_once_each_time(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    sender = sender_of(OtelTable(endpoint=f"http://127.0.0.1:{port}", timeout_seconds=1.3))
    for lost in (1, 2):
        sender.put(span())
        until(lambda lost=lost: sender.lost == lost, "the batch is lost")
    with receiving(port) as receiver:
        sender.put(span())
        sender.flush(5)
        assert len(receiver.spans) == 1
    assert lines(caplog) == ["span_receiver_down", "span_receiver_up", "spans_lost"]
    assert "Connection refused" in caplog.text
    assert "not_sent=0 dropped=2" in caplog.text


def test_a_request_is_sent_again_where_that_is_worth_it_and_never_where_it_is_refused(
    receiver: SpanReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    sender = sender_of(OtelTable(endpoint=receiver.endpoint))
    for answers, arrived, lost in (([503], 1, 0), ([400], 1, 1), ([], 2, 1)):
        receiver.answers[:] = answers
        sender.put(span())
        sender.flush(5)
        assert (len(receiver.spans), sender.lost) == (arrived, lost)
    assert lines(caplog)[:2] == ["span_receiver_down", "spans_lost"]
    assert "code: 400" in caplog.text


class Hangs(SpanExporter):
    """Until it is let go; then it fails."""

    def __init__(self) -> None:
        self.goes = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.goes.wait(20)
        raise OSError("gone")


def test_what_does_not_fit_is_lost_and_counted_and_who_stops_waits_no_longer_than_it_may(
    caplog: pytest.LogCaptureFixture,
) -> None:
    exporter = Hangs()
    sender, began = Sender(exporter, "nowhere", 1000), time.monotonic()
    for _ in range(4000):
        sender.put(span())
    assert 4000 - 1000 - 512 <= sender.lost <= 4000 - 1000
    sender.flush(0.2)
    assert time.monotonic() - began < 5
    assert lines(caplog) == ["spans_lost"]
    assert f"not_sent={4000 - sender.lost} " in caplog.text
    exporter.goes.set()
    until(lambda: sender.lost == 4000, "all is lost")
    assert lines(caplog) == ["spans_lost", "span_receiver_down"]
    assert "reason=OSError('gone')" in caplog.text


def test_what_the_sdk_says_to_others_is_left_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    exporter = Hangs()
    sender = Sender(exporter, "nowhere", 1000)
    for _ in range(600):
        sender.put(span())
    until(lambda: SDK.filters, "it is busy")
    SDK.warning("of another exporter")
    exporter.goes.set()
    until(lambda: sender.lost == 600, "all is lost")
    assert lines(caplog) == ["of", "span_receiver_down"]
    assert not SDK.filters


def test_without_the_sdk_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tasker_otel.sending", raising=False)
    monkeypatch.setitem(sys.modules, SDK.name, None)
    (plugin,) = (each for each in installed() if each.name == "otel")
    _, refusal = ready(plugin, PluginChoice(enabled=("otel",)))
    assert refusal
    assert "pip install opentelemetry-sdk" in refusal
