"""Spans as OTLP has them on the wire: messages of protobuf, of which only what is needed here can be written.

The SDK of OpenTelemetry takes ten times as long for a span, which is more than Tasker takes for the whole step. The
tests read what is written here with the official classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

moment = Struct("<Q").pack
"""A time in nanoseconds since 1970, as what `event` makes is to be followed by."""
_TIMES = Struct("<BQBQ").pack
KEY, VALUE = 1, 2
TEXT, BOOLEAN, INTEGER = 1, 2, 3
"""The kinds of value that an attribute may have here, by the number of their field."""
RESOURCE_SPANS = 1
RESOURCE, SCOPE_SPANS = 1, 2
SCOPE, SCOPE_SPAN = 1, 2
EVENT_TIME, EVENT_NAME, EVENT_ATTRIBUTE = 1, 2, 3
STATUS_MESSAGE, STATUS_CODE = 2, 3
ERROR = 2


class SpanField:
    """The numbers of the fields of a span."""

    TRACE_ID = 1
    SPAN_ID = 2
    TRACE_STATE = 3
    PARENT_ID = 4
    NAME = 5
    KIND = 6
    START = 7
    END = 8
    ATTRIBUTE = 9
    EVENT = 11
    STATUS = 15


def varint(value: int) -> bytes:
    """A whole number that is not negative, seven bits in each byte."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def field(number: int, content: bytes) -> bytes:
    """A field that holds bytes, text or a message."""
    length = len(content)
    return bytes((number << 3 | 2, length)) + content if length < 128 else _long_field(number, content)


def number_field(number: int, value: int) -> bytes:
    """A field that holds a whole number."""
    return bytes((number << 3,)) + varint(value)


def times(start: int, end: int) -> bytes:
    """When a span began and ended, in nanoseconds since 1970."""
    return _TIMES(SpanField.START << 3 | 1, start, SpanField.END << 3 | 1, end)


def attribute(key: str, value: str | int | bool, number: int = SpanField.ATTRIBUTE) -> bytes:
    """An attribute, as a field of this number."""
    if isinstance(value, str):
        content = field(TEXT, value.encode("utf-8", "replace"))
    else:
        content = number_field(BOOLEAN if isinstance(value, bool) else INTEGER, int(value))
    return field(number, field(KEY, key.encode()) + field(VALUE, content))


def event(name: str, attributes: bytes = b"") -> bytes:
    """What happened during a span, all but its `moment`, which is to follow; the attributes are `event_attribute`s."""
    told = field(EVENT_NAME, name.encode()) + attributes + bytes((EVENT_TIME << 3 | 1,))
    return field(SpanField.EVENT, told + moment(0))[: -len(moment(0))]


def event_attribute(key: str, value: str | int | bool) -> bytes:
    """An attribute of an event."""
    return attribute(key, value, EVENT_ATTRIBUTE)


def failed(why: str) -> bytes:
    """The status of a span that went wrong."""
    return field(SpanField.STATUS, field(STATUS_MESSAGE, why.encode()) + number_field(STATUS_CODE, ERROR))


def resource(attributes: Iterable[tuple[str, str]], scope: str, version: str) -> tuple[bytes, bytes]:
    """Who sends spans, and what has made them, as `request` wants them."""
    told = b"".join(attribute(key, value, 1) for key, value in attributes)
    return field(RESOURCE, told), field(SCOPE, field(1, scope.encode()) + field(2, version.encode()))


def request(sender: tuple[bytes, bytes], spans: Iterable[bytes]) -> bytes:
    """What is posted: these spans of one sender."""
    told, scope = sender
    of_scope = scope + b"".join(field(SCOPE_SPAN, span) for span in spans)
    return field(RESOURCE_SPANS, told + field(SCOPE_SPANS, of_scope))


def _long_field(number: int, content: bytes) -> bytes:
    return bytes((number << 3 | 2,)) + varint(len(content)) + content
