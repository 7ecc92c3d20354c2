"""The plugin `otel`: identifiers, sampling, what a span holds, and a receiver that is away or refuses."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from tasker.app.configured import from_environment
from tasker.hookspecs import AttemptEnded, AttemptStarted, TaskFinished
from tasker.plugins.choice import PluginChoice
from tasker.plugins.process import plugins_of
from tasker.settings.redaction import redacted
from tasker_otel import sender as sending
from tasker_otel.identity import attempt_span, is_sampled, task_identity, task_span
from tasker_otel.receiver import Unreachable
from tasker_otel.sender import Sender, sender_of
from tasker_otel.spans import REMEMBERED_TASKS, Spans
from tasker_otel.table import OtelTable
from tasker_otel.wire import request, resource
from tests.support.servers.span_receiver import ReceivedSpan, SpanReceiver, receiving, spans_of
from tests.support.waiting import until

TASK = "01a20288-32b1-7d04-bf4e-698b01000000"
STEP = "01a20288-32b1-7d04-bf4e-698b01000002"
CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
BEGAN = datetime.fromtimestamp(int("01a2028832b1", 16) / 1000, UTC)
ATTEMPT = AttemptStarted(
    TASK, STEP, "shop", "order", "pay", "shop.pay", 1, 3, 7, "worker-1", "correlation-1", BEGAN + timedelta(seconds=1)
)
WHO = resource([("service.name", "tasker")], "tasker", "1")


def ended(attempt: AttemptStarted = ATTEMPT, end: str = "succeeded", **more: object) -> AttemptEnded:
    after = attempt.started_at + timedelta(milliseconds=20)
    return AttemptEnded(attempt, end, 12, ended_at=after, **more)  # type: ignore[arg-type]


def failed(attempt: AttemptStarted = ATTEMPT, *, retryable: bool = True) -> AttemptEnded:
    return ended(attempt, "failed", error_type="timeout", error_message="card 4111", retryable=retryable)


def read(span: bytes | None) -> ReceivedSpan:
    assert span is not None
    (found,) = spans_of(request(WHO, [span]))
    return found


@pytest.fixture
def receiver() -> Iterator[SpanReceiver]:
    with receiving() as found:
        yield found


def test_every_process_computes_the_same_identifiers() -> None:
    own = task_identity(TASK, None, 1.0)
    assert (own.trace_id.hex(), own.span_id.hex()) == ("01a2028832b17d04bf4e698b01000000", "bf4e698b01000000")
    assert (own.parent_id, own.sampled) == (None, True)
    called = task_identity(TASK, CALLER, 0.0)
    assert (called.trace_id.hex(), called.sampled) == ("4bf92f3577b34da6a3ce929d0e0e4736", True)
    assert (called.parent_id or b"").hex() == "00f067aa0ba902b7"
    assert called.span_id == own.span_id
    assert not task_identity(TASK, CALLER[:-2] + "00", 1.0).sampled
    spans = {
        attempt_span(STEP, 7),
        attempt_span(STEP, 8),
        attempt_span(TASK, 7),
        task_span("0" * 8 + "-" * 4 + "0" * 24),
    }
    assert len({*spans, bytes(8)}) == 5


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_share_of_traces_is_kept_and_a_smaller_share_is_part_of_a_larger_one(share: float) -> None:
    traces = [number.to_bytes(16) for number in range(1, 4001)]
    kept = {trace for trace in traces if is_sampled(trace, share)}
    assert abs(len(kept) / 4000 - share) < 0.03
    assert kept >= {trace for trace in traces if is_sampled(trace, share / 2)}


def test_the_span_of_an_attempt_names_what_ran_where() -> None:
    span = read(Spans().attempt(ended()))
    assert (span.name, span.parent_id) == ("worker.step_execution", "bf4e698b01000000")
    assert (span.span_id, span.trace_id) == (attempt_span(STEP, 7).hex(), TASK.replace("-", ""))
    assert span.attributes == {
        "correlation_id": "correlation-1",
        "task_uuid": TASK,
        "step_uuid": STEP,
        "step_name": "pay",
        "namespace": "shop",
        "template": "order",
        "handler": "shop.pay",
        "attempt": 1,
        "max_attempts": 3,
        "worker": "worker-1",
        "end": "succeeded",
    }
    assert span.events == {
        "step.execution_started": {},
        "step.execution_completed": {"success": True, "duration_ms": 12},
    }
    assert (span.start, span.end - span.start) == (int(BEGAN.timestamp() * 1000 + 1000) * 10**6, 20 * 10**6)
    assert not span.failed


def test_a_failure_is_told_without_its_message_and_names_the_attempt_that_follows() -> None:
    first, last = read(Spans().attempt(failed())), read(Spans().attempt(failed(replace(ATTEMPT, attempt=3))))
    assert first.failed
    assert first.why == "timeout"
    assert first.events["exception"] == {"exception.type": "timeout"}
    assert first.events["step.retry"] == {"next_attempt": 2}
    assert "step.retry" not in last.events
    assert "step.retry" not in read(Spans().attempt(failed(retryable=False))).events
    told = read(Spans(messages=True).attempt(failed()))
    assert told.events["exception"]["exception.message"] == "card 4111"


@pytest.mark.parametrize("end", ["released", "deferred", "cancelled", "lost"])
def test_an_attempt_that_came_to_nothing_is_neither_a_success_nor_a_failure(end: str) -> None:
    came_to = AttemptEnded(ATTEMPT, end, ended_at=ATTEMPT.started_at)  # type: ignore[arg-type]
    span = read(Spans().attempt(came_to))
    assert (span.attributes["end"], [*span.events], span.failed) == (end, ["step.execution_started"], False)


def test_a_clock_that_was_set_back_makes_no_span_that_ends_before_it_begins() -> None:
    back = replace(ended(), ended_at=BEGAN - timedelta(hours=1))
    span = read(Spans().attempt(back))
    assert span.start == span.end


def test_the_span_of_a_task_is_in_the_trace_of_its_caller_from_its_submission_on() -> None:
    spans, now = Spans(), BEGAN + timedelta(seconds=3)
    spans.attempt(ended(replace(ATTEMPT, traceparent=CALLER, tracestate="vendor=1,other=2")))
    span = read(spans.task(TaskFinished(TASK, "error"), now))
    assert (span.name, span.span_id, span.parent_id) == ("task_execution", "bf4e698b01000000", "00f067aa0ba902b7")
    assert (span.trace_id, span.trace_state) == (CALLER[3:35], "vendor=1,other=2")
    assert (span.start, span.end) == (int(BEGAN.timestamp() * 1000) * 10**6, int(now.timestamp() * 1000) * 10**6)
    assert span.attributes["task_name"] == span.attributes["template"] == "order"
    assert (span.attributes["state"], span.failed) == ("error", True)
    spans.attempt(ended())
    assert not read(spans.task(TaskFinished(TASK, "complete"), now)).failed


def test_a_task_that_this_process_knows_nothing_of_has_no_span_and_memory_is_bounded() -> None:
    spans = Spans()
    assert spans.task(TaskFinished(TASK, "complete"), BEGAN) is None
    spans.attempt(ended())
    for number in range(REMEMBERED_TASKS):
        spans.attempt(ended(replace(ATTEMPT, task_uuid=f"{number:08x}{TASK[8:]}")))
    assert spans.task(TaskFinished(TASK, "complete"), BEGAN) is None


def test_what_is_not_sampled_is_not_sent() -> None:
    spans = Spans(share=0.0)
    assert spans.attempt(ended()) is None
    assert spans.task(TaskFinished(TASK, "complete"), BEGAN) is None
    assert spans.attempt(ended(replace(ATTEMPT, task_uuid=STEP, traceparent=CALLER))) is not None


async def test_what_a_process_does_arrives_with_headers_and_the_name_of_the_service(receiver: SpanReceiver) -> None:
    table = OtelTable(
        endpoint=receiver.endpoint,
        headers="authorization=Bearer%20key",
        service_name="shop",
        resource_attributes="deployment.environment.name=staging",
    )
    plugins = plugins_of(PluginChoice(enabled=("otel",), settings={"otel": table}))
    plugins.tell("tasker_attempt_ended", ended(replace(ATTEMPT, step="ä" * 200)))
    plugins.tell("tasker_task_finished", TaskFinished(TASK, "complete"))
    plugins.tell("tasker_process_stopped", None)
    await plugins.settle()
    step, task = receiver.spans
    assert (step.parent_id, step.attributes["step_name"]) == (task.span_id, "ä" * 200)
    assert task.resource == {"service.name": "shop", "deployment.environment.name": "staging"}
    assert receiver.headers[0]["authorization"] == "Bearer key"


def test_a_receiver_that_is_away_loses_nothing_that_fits_and_is_told_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "FIRST_PAUSE", 0.05)
    caplog.set_level(logging.INFO)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    sender, spans = sender_of(OtelTable(endpoint=f"http://127.0.0.1:{port}")), Spans()
    span = spans.attempt(ended()) or b""
    began = time.monotonic()
    for _ in range(20):
        sender.put(span)
    sender.flush(0.3)
    assert time.monotonic() - began < 2
    with receiving(port) as receiver:
        until(lambda: len(receiver.spans) == 20, "all have arrived", limit=20)
        sender.put(span)
        sender.flush(5)
        assert len(receiver.spans) == 21
    lines = [record.getMessage().split()[0] for record in caplog.records]
    assert lines == ["span_receiver_down", "spans_lost", "span_receiver_up"]


def test_a_request_is_sent_again_where_that_is_worth_it_and_never_where_it_is_refused(
    receiver: SpanReceiver, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "FIRST_PAUSE", 0.05)
    sender, span = sender_of(OtelTable(endpoint=receiver.endpoint)), Spans().attempt(ended()) or b""
    for answer, arrived, lost in ((503, 1, 0), (400, 1, 1), (200, 2, 1)):
        receiver.answers[:] = [answer] if answer != 200 else []
        sender.put(span)
        sender.flush(5)
        assert (len(receiver.spans), sender.lost) == (arrived, lost)
    assert "reason=it answers 503" in caplog.text


def test_what_does_not_fit_is_dropped_and_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "CAPACITY", 10)
    taken: list[bytes] = []

    def refuse(spans: object) -> None:
        raise Unreachable("nobody there")

    sender = Sender(refuse, "nowhere")
    for _ in range(2000):
        sender.put(b"span")
    assert sender.lost >= 2000 - 10 - sending.BATCH
    assert taken == []


def test_settings_that_cannot_work_are_refused_and_headers_are_hidden() -> None:
    for wrong in (
        {"endpoint": "collector:4318"},
        {"endpoint": "http://me:secret@host"},
        {"headers": "key"},
        {"share": 2},
    ):
        with pytest.raises(ValidationError):
            OtelTable.model_validate(wrong)
    for wrong_pair in ("a=%0d%0ab", "a b=c", "=c"):
        with pytest.raises(ValidationError):
            OtelTable.model_validate({"headers": wrong_pair})
    shown, _ = redacted({"plugins": {"otel": {"headers": "authorization=key", "service_name": "shop"}}})
    assert shown == {"plugins": {"otel": {"headers": "***REDACTED***", "service_name": "shop"}}}


def test_the_variables_of_opentelemetry_count_without_any_file() -> None:
    variables = {
        "TASKER_PLUGINS_ENABLED": "otel",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector:4318",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=key",
        "OTEL_SERVICE_NAME": "shop",
        "OTEL_RESOURCE_ATTRIBUTES": "team=a",
        "OTEL_TRACES_SAMPLER_ARG": "0.25",
    }
    table = from_environment(environ=variables).plugins.settings["otel"]
    assert (table.endpoint, table.headers) == ("https://collector:4318", "authorization=key")
    assert (table.service_name, table.resource_attributes, table.share) == ("shop", "team=a", 0.25)
