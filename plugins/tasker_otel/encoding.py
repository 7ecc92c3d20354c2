"""Encoder of spans for OTLP, with the official protobuf classes.

The SDK creates a dozen objects for each span and encodes each of its attributes anew, which takes half of Tasker's own
time for a step. Here similar spans share one message, in which the few different values are set before it is encoded
again; and the common part of the spans of a task is encoded once. Protobuf reads two concatenated messages as one that
has the fields of both. The tests compare the output with the SDK's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.sdk.trace import ReadableSpan

Pairs: TypeAlias = Iterable[tuple[str, str | int | bool]]
LOCAL = trace_pb2.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK
REMOTE = LOCAL | trace_pb2.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK
RESOURCE_SPANS = ExportTraceServiceRequest.RESOURCE_SPANS_FIELD_NUMBER
SCOPE_SPANS, SPANS = trace_pb2.ResourceSpans.SCOPE_SPANS_FIELD_NUMBER, trace_pb2.ScopeSpans.SPANS_FIELD_NUMBER
INTERNAL, SERVER = trace_pb2.Span.SPAN_KIND_INTERNAL, trace_pb2.Span.SPAN_KIND_SERVER
ERROR = trace_pb2.Status.STATUS_CODE_ERROR


class Common:
    """Common part of the spans of a task."""

    def __init__(self, names: Sequence[str]) -> None:
        self._span = trace_pb2.Span(attributes=_attributes((name, "") for name in names))
        self._values = [attribute.value for attribute in self._span.attributes]

    def encoded(self, trace_id: bytes, trace_state: str, values: Iterable[str]) -> bytes:
        """Encode with these values of its attributes, in their order."""
        self._span.trace_id, self._span.trace_state = trace_id, trace_state
        for place, value in zip(self._values, values, strict=True):
            place.string_value = value
        return _bytes(self._span)


class AttemptShape:
    """Attempts of a step with the same kind of outcome.

    `end` contains the attributes of the completing event without its duration, None if there was none; `raised`
    contains the events of a failure. An `exception.message` among these has a separate value for each attempt.
    """

    def __init__(self, attributes: Pairs, end: Pairs | None, raised: Iterable[tuple[str, Pairs]], why: str) -> None:
        attributes = _attributes([*attributes, ("step_uuid", "")])
        events = [_event("step.execution_started", ())]
        if end is not None:
            events.append(_event("step.execution_completed", [*end, ("duration_ms", 0)]))
        events += [_event(name, pairs) for name, pairs in raised]
        self._span = trace_pb2.Span(
            name="worker.step_execution",
            kind=INTERNAL,
            flags=LOCAL,
            status=_status(why),
            attributes=attributes,
            events=events,
        )
        self._began, *self._over = self._span.events
        self._step = self._span.attributes[-1].value
        self._duration = self._over[0].attributes[-1].value if self._over else AnyValue()
        messages = [pair.value for event in self._over for pair in event.attributes if pair.key == "exception.message"]
        self._message = messages[0] if messages else AnyValue()

    def encoded(
        self, place: tuple[bytes, bytes], step_uuid: str, times: tuple[int, int], duration_ms: int, message: str
    ) -> bytes:
        """Encode one of them. `place` is its span and that of its task, `times` are its start and end."""
        span, step, (start, end) = self._span, self._step, times
        span.span_id, span.parent_span_id = place
        span.start_time_unix_nano = self._began.time_unix_nano = start
        span.end_time_unix_nano = end
        for event in self._over:
            event.time_unix_nano = end
        step.string_value, self._duration.int_value, self._message.string_value = step_uuid, duration_ms, message
        return _bytes(span)


class Shape:
    """Similar spans without events: tasks of a template with the same outcome, and operations on them."""

    def __init__(self, name: str, attributes: Pairs, why: str = "", *, serves: bool = False) -> None:
        kind, status = SERVER if serves else INTERNAL, _status(why)
        self._span = trace_pb2.Span(name=name, kind=kind, status=status, attributes=_attributes(attributes))

    def encoded(
        self, span_id: bytes, parent_id: bytes | None, times: tuple[int, int], *, is_remote: bool = False
    ) -> bytes:
        """Encode one of them; `is_remote`: the parent belongs to a caller."""
        span = self._span
        span.span_id, span.parent_span_id = span_id, parent_id or b""
        span.flags = REMOTE if is_remote else LOCAL
        span.start_time_unix_nano, span.end_time_unix_nano = times
        return _bytes(span)


class Request:
    """Request with spans of one resource and scope, those of `like`, as the SDK encodes it."""

    def __init__(self, like: ReadableSpan) -> None:
        (resource,) = encode_spans([like]).resource_spans
        (scope,) = resource.scope_spans
        del scope.spans[:], resource.scope_spans[:]
        self._resource, self._scope = _bytes(resource), _bytes(scope)

    def of(self, spans: Iterable[bytes]) -> bytes:
        """Encode the request with these spans."""
        within = b"".join([self._scope, *(part for span in spans for part in _within(SPANS, span))])
        scope = b"".join((self._resource, *_within(SCOPE_SPANS, within)))
        return b"".join(_within(RESOURCE_SPANS, scope))


def _within(field: int, message: bytes) -> tuple[bytes, bytes]:
    """Return an encoded message as a field of another one: number and type, length in groups of seven bits, content."""
    head, length = [field << 3 | 2], len(message)
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    return bytes((*head, length)), message


def _event(name: str, attributes: Pairs) -> trace_pb2.Span.Event:
    return trace_pb2.Span.Event(name=name, attributes=_attributes(attributes))


def _status(why: str) -> trace_pb2.Status:
    return trace_pb2.Status(code=ERROR, message=why) if why else trace_pb2.Status()


def _attributes(pairs: Pairs) -> list[KeyValue]:
    return [KeyValue(key=key, value=_value(value)) for key, value in pairs]


def _value(value: str | int | bool) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=value)
    return AnyValue(bool_value=value) if isinstance(value, bool) else AnyValue(int_value=value)


def _bytes(message: Any) -> bytes:
    encoded: bytes = message.SerializeToString()
    return encoded
