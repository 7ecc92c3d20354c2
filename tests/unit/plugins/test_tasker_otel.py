"""The plugin `otel`: identifiers, sampling, what a span holds and how it is encoded, and its settings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import format_span_id, format_trace_id

from tasker.app.configured import from_environment
from tasker.plugins.hook_arguments import AttemptEnded, AttemptStarted, TaskClosed, TaskFinished
from tasker.redaction import redacted
from tasker.settings.table import InvalidTable
from tasker_otel.encoding import Request
from tasker_otel.exporter import empty_span
from tasker_otel.identity import attempt_span, is_sampled, task_identity, task_span
from tasker_otel.spans import REMEMBERED_TASKS, Spans
from tasker_otel.table import OtelTable
from tests.support.servers.encoded_spans import readable

TASK = "01a20288-32b1-7d04-bf4e-698b01000000"
STEP = "01a20288-32b1-7d04-bf4e-698b01000002"
CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
BEGAN = datetime.fromtimestamp(int("01a2028832b1", 16) / 1000, UTC)
ATTEMPT = AttemptStarted(
    TASK, STEP, "shop", "order", "pay", "shop.pay", 1, 3, 7, "worker-1", "correlation-1", BEGAN + timedelta(seconds=1)
)
HERE = Resource({"service.name": "shop"})
SDK = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


def ended(attempt: AttemptStarted = ATTEMPT, end: str = "succeeded", **more: object) -> AttemptEnded:
    after = attempt.started_at + timedelta(milliseconds=20)
    return AttemptEnded(attempt, end, 12, ended_at=after, **more)  # type: ignore[arg-type]


def failed(attempt: AttemptStarted = ATTEMPT, *, retryable: bool = True) -> AttemptEnded:
    return ended(attempt, "failed", error_type="timeout", error_message="card 4111", retryable=retryable)


@dataclass
class Kept:
    """What an exporter of the SDK, which keeps spans in memory, is given."""

    spans: Spans
    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)

    def attempt(self, ended: AttemptEnded) -> ReadableSpan | None:
        return self._kept(self.spans.attempt(ended))

    def task(self, finished: TaskFinished, now: datetime = BEGAN) -> ReadableSpan | None:
        return self._kept(self.spans.task(finished, now))

    def closed(self, closed: TaskClosed) -> ReadableSpan | None:
        return self._kept(self.spans.closed(closed))

    def _kept(self, span: bytes | None) -> ReadableSpan | None:
        if span is None:
            return None
        SimpleSpanProcessor(self.exporter).on_end(readable(span, HERE))
        return self.exporter.get_finished_spans()[-1]


def closed(task: str = TASK, **more: object) -> TaskClosed:
    moment = BEGAN + timedelta(seconds=3)
    return TaskClosed(task, "cancelled", "shop", "order", "correlation-1", moment, **more)  # type: ignore[arg-type]


def kept(share: float = 1.0, *, messages: bool = False) -> Kept:
    return Kept(Spans(share, messages=messages))


def ids(span: ReadableSpan) -> tuple[str, str, str]:
    """Of the trace, the span and its parent."""
    context, parent = span.context, span.parent
    return format_trace_id(context.trace_id), format_span_id(context.span_id), parent and format_span_id(parent.span_id)


def events(span: ReadableSpan) -> dict[str, dict[str, Any]]:
    return {each.name: dict(each.attributes or {}) for each in span.events}


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
    span = kept().attempt(ended())
    assert span.name == "worker.step_execution"
    assert ids(span) == (TASK.replace("-", ""), attempt_span(STEP, 7).hex(), "bf4e698b01000000")
    assert span.context.trace_flags.sampled
    assert dict(span.attributes) == {
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
    assert events(span) == {
        "step.execution_started": {},
        "step.execution_completed": {"success": True, "duration_ms": 12},
    }
    assert [each.timestamp for each in span.events] == [span.start_time, span.end_time]
    assert span.start_time == int(BEGAN.timestamp() * 1000 + 1000) * 10**6
    assert span.end_time - span.start_time == 20 * 10**6
    assert (span.status.is_ok, span.status.is_unset) == (True, True)


def test_a_failure_is_told_without_its_message_and_names_the_attempt_that_follows() -> None:
    first, last = kept().attempt(failed()), kept().attempt(failed(replace(ATTEMPT, attempt=3)))
    assert (first.status.is_ok, first.status.description) == (False, "timeout")
    assert events(first)["step.execution_completed"]["success"] is False
    assert events(first)["exception"] == {"exception.type": "timeout"}
    assert events(first)["step.retry"] == {"next_attempt": 2}
    assert "step.retry" not in events(last)
    assert "step.retry" not in events(kept().attempt(failed(retryable=False)))
    told = kept(messages=True).attempt(failed())
    assert events(told)["exception"]["exception.message"] == "card 4111"


@pytest.mark.parametrize("end", ["released", "deferred", "cancelled", "lost"])
def test_an_attempt_that_came_to_nothing_is_neither_a_success_nor_a_failure(end: str) -> None:
    came_to = AttemptEnded(ATTEMPT, end, ended_at=ATTEMPT.started_at)  # type: ignore[arg-type]
    span = kept().attempt(came_to)
    assert (span.attributes["end"], [*events(span)], span.status.is_ok) == (end, ["step.execution_started"], True)


def test_a_clock_that_was_set_back_makes_no_span_that_ends_before_it_begins() -> None:
    span = kept().attempt(replace(ended(), ended_at=BEGAN - timedelta(hours=1)))
    assert span.start_time == span.end_time


def test_the_span_of_a_task_is_in_the_trace_of_its_caller_from_its_submission_on() -> None:
    spans, now = kept(), BEGAN + timedelta(seconds=3)
    step = spans.attempt(ended(replace(ATTEMPT, traceparent=CALLER, tracestate="vendor=1,other=2")))
    span = spans.task(TaskFinished(TASK, "error"), now)
    assert (span.name, ids(span)) == ("task_execution", (CALLER[3:35], "bf4e698b01000000", "00f067aa0ba902b7"))
    assert (span.parent.is_remote, step.parent.is_remote) == (True, False)
    assert span.context.trace_state.to_header() == step.context.trace_state.to_header() == "vendor=1,other=2"
    assert span.start_time == int(BEGAN.timestamp() * 1000) * 10**6
    assert span.end_time == int(now.timestamp() * 1000) * 10**6
    assert span.attributes["task_name"] == span.attributes["template"] == "order"
    assert (span.attributes["state"], span.status.is_ok) == ("error", False)
    own = spans.attempt(ended())
    assert own.context.trace_state.to_header() == ""
    assert spans.task(TaskFinished(TASK, "complete"), now).status.is_ok


def test_a_task_that_this_process_knows_nothing_of_has_no_span_and_memory_is_bounded() -> None:
    spans = Spans()
    assert spans.task(TaskFinished(TASK, "complete"), BEGAN) is None
    spans.attempt(ended())
    for number in range(REMEMBERED_TASKS):
        spans.attempt(ended(replace(ATTEMPT, task_uuid=f"{number:08x}{TASK[8:]}")))
    assert spans.task(TaskFinished(TASK, "complete"), BEGAN) is None


def test_a_task_that_was_closed_has_the_span_that_its_attempts_would_have_let_it_have() -> None:
    told = {"traceparent": CALLER, "tracestate": "vendor=1"}
    spans, others = kept(), kept()
    spans.attempt(ended(replace(ATTEMPT, **told)))
    run = spans.task(TaskFinished(TASK, "cancelled"), closed().ended_at)
    alone = others.closed(closed(**told))
    assert alone.to_json() == run.to_json()
    assert others.closed(closed(STEP)).context.trace_id == int(STEP.replace("-", ""), 16)
    assert kept(share=0.0).closed(closed()) is None


def test_a_task_that_was_closed_is_told_once() -> None:
    spans = kept()
    spans.attempt(ended())
    assert spans.closed(closed()) is not None
    assert spans.task(TaskFinished(TASK, "cancelled")) is None


def test_what_is_not_sampled_is_not_sent() -> None:
    spans = kept(share=0.0)
    assert spans.attempt(ended()) is None
    assert spans.task(TaskFinished(TASK, "complete")) is None
    assert spans.attempt(ended(replace(ATTEMPT, task_uuid=STEP, traceparent=CALLER))) is not None
    assert len(spans.exporter.get_finished_spans()) == 1


def test_spans_are_encoded_as_the_sdk_encodes_them() -> None:
    spans = Spans(messages=True)
    called = replace(ATTEMPT, task_uuid=STEP, traceparent=CALLER, tracestate="vendor=1,other=2")
    halves = AttemptEnded(ATTEMPT, "failed", 12, error_type="\udc80", error_message="half \udc80", ended_at=BEGAN)
    made = [spans.attempt(each) for each in (ended(), failed(), ended(called), failed(called), halves)]
    made += [spans.task(TaskFinished(each, "error"), BEGAN) for each in (TASK, STEP)]
    found = [each for each in made if each]
    assert len(found) == 7
    expected = encode_spans([readable(each, HERE) for each in found])
    assert ExportTraceServiceRequest.FromString(Request(empty_span(HERE)).of(found)) == expected


def test_attempts_that_are_alike_are_told_apart_by_what_differs() -> None:
    spans = kept(messages=True)
    other = replace(ATTEMPT, task_uuid=STEP, step_uuid=TASK, token=8, started_at=BEGAN, correlation_id="correlation-2")
    told = [
        (ended(), "pay", 12, None),
        (replace(ended(other), duration_ms=0), "pay", 0, None),
        (failed(), "pay", 12, "card 4111"),
        (replace(failed(other), error_message="gone", duration_ms=5), "pay", 5, "gone"),
        (replace(failed(), error_message=None), "pay", 12, None),
        (ended(replace(other, step="ship")), "ship", 12, None),
    ]
    for each, step, duration_ms, message in told * 2:
        attempt, span = each.attempt, spans.attempt(each)
        expected = (task_identity(attempt.task_uuid, None, 1.0), attempt_span(attempt.step_uuid, attempt.token).hex())
        assert ids(span) == (expected[0].trace_id.hex(), expected[1], expected[0].span_id.hex())
        for name in ("task_uuid", "step_uuid", "correlation_id"):
            assert span.attributes[name] == getattr(attempt, name)
        assert span.start_time == int(attempt.started_at.timestamp() * 1000) * 10**6
        assert span.end_time == int(each.ended_at.timestamp() * 1000) * 10**6
        assert [happened.timestamp for happened in span.events[1:]] == [span.end_time] * (len(span.events) - 1)
        assert span.attributes["step_name"] == step
        assert events(span)["step.execution_completed"]["duration_ms"] == duration_ms
        assert events(span).get("exception", {}).get("exception.message") == message


def test_settings_that_cannot_work_are_refused_and_headers_are_hidden() -> None:
    for wrong in (
        {"endpoint": "collector:4318"},
        {"endpoint": "http://me:secret@host"},
        {"headers": "key"},
        {"share": 2},
    ):
        with pytest.raises(InvalidTable):
            OtelTable.parse(wrong)
    for wrong_pair in ("a=%0d%0ab", "a b=c", "=c"):
        with pytest.raises(InvalidTable):
            OtelTable.parse({"headers": wrong_pair})
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
