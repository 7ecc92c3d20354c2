"""The plugin `otel` with `detail = "all"`: which spans there are around attempts, and which there are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.trace import SpanKind

from tasker.plugins.hook_arguments import RequestAnswered, StateTransition, TasksSubmitted, TaskSubmitted
from tasker_otel import AROUND, OpenTelemetry
from tasker_otel.encoding import Request
from tasker_otel.exporter import empty_span
from tasker_otel.spans import Spans
from tasker_otel.surroundings import REMEMBERED_CLAIMS, Surroundings
from tasker_otel.table import OtelTable
from tests.support.servers.encoded_spans import readable
from tests.support.servers.span_receiver import receiving
from tests.unit.plugins.test_tasker_otel import ATTEMPT, BEGAN, CALLER, HERE, STEP, TASK, ended, ids

REQUEST = RequestAnswered("POST", "/v1/tasks", 201, None, 12.5, BEGAN, CALLER, "vendor=1")
CLAIMED = StateTransition(TASK, STEP, "in_progress", "worker-1", 7, asked_at=BEGAN, answered_at=BEGAN)
TAKEN = replace(CLAIMED, to_state="complete")
SUBMITTED = TasksSubmitted("shop", "order", 1, 2.5, (TaskSubmitted(TASK, "correlation-1"),), BEGAN)


def around(share: float = 1.0) -> Surroundings:
    return Surroundings(Spans(share))


def test_spans_around_attempts_are_encoded_as_the_sdk_encodes_them() -> None:
    spans = around()
    [*spans.moved([CLAIMED])]
    made = [*spans.created(SUBMITTED), spans.ended(ended()), *spans.moved([TAKEN]), spans.answered(REQUEST)]
    found = [each for each in made if each]
    assert len(found) == 4
    expected = encode_spans([readable(each, HERE) for each in found])
    assert ExportTraceServiceRequest.FromString(Request(empty_span(HERE)).of(found)) == expected


def test_a_request_is_a_span_of_the_server_below_its_caller() -> None:
    span = readable(around().answered(REQUEST) or b"", HERE)
    assert (span.name, span.kind, ids(span)[0], ids(span)[2]) == (
        "POST /v1/tasks",
        SpanKind.SERVER,
        CALLER[3:35],
        CALLER[36:52],
    )
    assert dict(span.attributes) == {"http.method": "POST", "http.route": "/v1/tasks", "http.status_code": 201}
    assert (span.end_time - span.start_time, span.status.is_ok) == (12_500_000, True)
    failed = readable(around().answered(replace(REQUEST, status=503, endpoint="")) or b"", HERE)
    assert (failed.name, failed.status.is_ok, "http.route" in failed.attributes) == ("POST", False, False)


@pytest.mark.parametrize("traceparent", [None, f"{CALLER[:-2]}00"])
def test_a_request_without_a_trace_that_is_kept_is_none(traceparent: str | None) -> None:
    assert around().answered(replace(REQUEST, traceparent=traceparent)) is None


def test_what_is_not_sampled_has_no_spans_around_it() -> None:
    spans = around(share=0.0)
    assert [*spans.created(SUBMITTED), *spans.moved([CLAIMED])] == []
    assert spans.ended(ended()) is None
    assert [*spans.moved([TAKEN])] == []


def test_others_claims_and_results_and_attempts_without_a_result_are_no_spans() -> None:
    spans = around()
    assert spans.ended(replace(ended(end="released"), duration_ms=None)) is None
    of_a_task = replace(TAKEN, step_uuid=None, token=None)
    assert [*spans.moved([TAKEN, of_a_task, replace(TAKEN, token=8)])] == []


def test_a_result_is_told_once_and_what_is_remembered_is_bounded() -> None:
    spans = around()
    spans.ended(ended())
    assert [len([*spans.moved([TAKEN])]) for _ in range(2)] == [1, 0]
    spans.ended(ended())
    for token in range(100, 100 + REMEMBERED_CLAIMS):
        [*spans.moved([replace(CLAIMED, token=token)])]
        spans.ended(ended(replace(ATTEMPT, token=token + REMEMBERED_CLAIMS)))
    assert (len(spans._claims), [*spans.moved([TAKEN])]) == (REMEMBERED_CLAIMS, [])


def test_a_clock_that_was_set_back_makes_no_span_that_ends_before_it_begins() -> None:
    spans = around()
    spans.ended(ended())
    (told,) = spans.moved([replace(TAKEN, answered_at=BEGAN - timedelta(hours=1))])
    span = readable(told, HERE)
    assert span.start_time == span.end_time


def test_nothing_more_is_heard_unless_these_spans_are_asked_for() -> None:
    plugin = OpenTelemetry()
    assert plugin.tasker_configured(OtelTable(detail="all")) == ()
    assert plugin.tasker_configured(OtelTable()) == AROUND
    assert plugin._around is None


def test_a_server_that_ends_sends_what_it_has_not_sent_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing tells it so, as a worker is told."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
    ends = list[Callable[[], None]]()
    monkeypatch.setattr("atexit.register", ends.append)
    plugin = OpenTelemetry()
    with receiving() as receiver:
        plugin.tasker_configured(OtelTable(endpoint=receiver.endpoint, detail="all"))
        plugin.tasker_request_answered(REQUEST)
        for end in ends:
            end()
        assert [span.name for span in receiver.spans] == ["POST /v1/tasks"]
