"""Spans as OTLP has them, in the official classes of protobuf.

The SDK encodes each attribute of each span anew, and keeps a span as a dozen objects until then: together half of what
Tasker takes for a step. Here what spans have in common is encoded once. The tests compare the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext
from opentelemetry.trace.status import StatusCode

Pairs: TypeAlias = tuple[tuple[str, str | int | bool], ...]
LOCAL = trace_pb2.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK
REMOTE = LOCAL | trace_pb2.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK


class SharingSpan(ReadableSpan):
    """A span that has attributes in common with others, in groups; those that it is given as usual are its own."""

    def __init__(self, *given: Any, shared: Sequence[Pairs], **more: Any) -> None:
        super().__init__(*given, **more)
        self.shared = shared
        self.message = b""

    def pack(self) -> None:
        """Make `message` all that it holds: what waits is one object for the garbage collector, and not a dozen."""
        self.message = _bytes(_filled(self))
        self._attributes, self._events, self.shared = None, (), ()

    @property
    def own(self) -> Mapping[str, Any]:
        """The attributes that no other span has."""
        return self._attributes or {}

    @property
    def attributes(self) -> Mapping[str, Any]:
        """All of them."""
        return MappingProxyType({key: value for group in self.shared for key, value in group} | dict(self.own))


def request_of(spans: Sequence[SharingSpan]) -> bytes:
    """A request with these spans, which are packed and of one resource and scope, as the SDK encodes it."""
    request = encode_spans(spans[:1])
    found = request.resource_spans[0].scope_spans[0].spans
    del found[:]
    for span in spans:
        found.add().MergeFromString(span.message)
    return _bytes(request)


def _filled(span: SharingSpan) -> trace_pb2.Span:
    context, found = span.get_span_context(), trace_pb2.Span()
    assert context
    found.MergeFromString(_outline(span.name, span.status.status_code, span.status.description))
    found.trace_id, found.span_id = context.trace_id.to_bytes(16), context.span_id.to_bytes(8)
    found.start_time_unix_nano, found.end_time_unix_nano = span.start_time or 0, span.end_time or 0
    _place(found, context, span.parent)
    for group in span.shared:
        found.MergeFromString(_attributes(group))
    for key, value in span.own.items():
        found.attributes.add(key=key).value.CopyFrom(_value(value))
    for event in span.events:
        happened = found.events.add()
        happened.MergeFromString(_event(event.name, tuple(event.attributes.items()) if event.attributes else ()))
        happened.time_unix_nano = event.timestamp
    return found


def _place(found: trace_pb2.Span, context: SpanContext, parent: SpanContext | None) -> None:
    if context.trace_state:
        found.trace_state = context.trace_state.to_header()
    if parent:
        found.parent_span_id = parent.span_id.to_bytes(8)
    found.flags = REMOTE if parent and parent.is_remote else LOCAL


@lru_cache(1000)
def _outline(name: str, code: StatusCode, why: str | None) -> bytes:
    status = trace_pb2.Status(code=code.value, message=why)  # type: ignore[arg-type]  # a number, as the SDK gives it
    return _bytes(trace_pb2.Span(name=name, kind=trace_pb2.Span.SPAN_KIND_INTERNAL, status=status))


@lru_cache(4000)
def _attributes(group: Pairs) -> bytes:
    return _bytes(trace_pb2.Span(attributes=_pairs(group)))


@lru_cache(4000)
def _event(name: str, attributes: Pairs) -> bytes:
    return _bytes(trace_pb2.Span.Event(name=name, attributes=_pairs(attributes)))


def _bytes(message: Any) -> bytes:
    found: bytes = message.SerializeToString()
    return found


def _pairs(pairs: Iterable[tuple[str, Any]]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_value(value)) for key, value in pairs]


def _value(value: str | int | bool) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=value)
    return AnyValue(bool_value=value) if isinstance(value, bool) else AnyValue(int_value=value)
