"""Spans that the plugin `otel` has encoded, read back with the official classes into those of the SDK."""

from __future__ import annotations

from typing import Any

from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags, TraceState
from opentelemetry.trace.status import Status, StatusCode

from tasker_otel.exporter import empty_span

KINDS = {trace_pb2.Span.SPAN_KIND_INTERNAL: SpanKind.INTERNAL, trace_pb2.Span.SPAN_KIND_SERVER: SpanKind.SERVER}
KEPT = TraceFlags(TraceFlags.SAMPLED)


def readable(message: bytes, resource: Resource) -> ReadableSpan:
    """The span as the SDK has it."""
    span = trace_pb2.Span.FromString(message)
    state = TraceState.from_header([span.trace_state]) if span.trace_state else None
    is_remote = bool(span.flags & trace_pb2.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)

    def context(span_id: bytes, *, is_remote: bool = False) -> SpanContext:
        return SpanContext(int.from_bytes(span.trace_id), int.from_bytes(span_id), is_remote, KEPT, state)

    return ReadableSpan(
        span.name,
        context(span.span_id),
        context(span.parent_span_id, is_remote=is_remote) if span.parent_span_id else None,
        resource,
        _values(span.attributes),
        [Event(each.name, _values(each.attributes), each.time_unix_nano) for each in span.events],
        kind=KINDS[span.kind],
        status=Status(StatusCode(span.status.code), span.status.message or None),
        start_time=span.start_time_unix_nano,
        end_time=span.end_time_unix_nano,
        instrumentation_scope=empty_span(resource).instrumentation_scope,
    )


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
