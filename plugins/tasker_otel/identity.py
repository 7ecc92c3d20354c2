"""Identifiers of traces and spans that every process computes alike, so that none has to ask another one."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from tasker.dataclasses import dataclass

SAMPLED = 0x01
"""The flag of a traceparent for a sampled trace."""
NO_SPAN = bytes(8)


@dataclass(frozen=True, slots=True)
class TaskIdentity:
    """Identity of a task in its trace, as bytes. `parent_id` is the submitter's span; `sampled`: its spans are sent."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes | None
    sampled: bool

    def traceparent_of(self, span_id: bytes) -> str:
        """Return the header for requests made within a span of this trace."""
        return f"00-{self.trace_id.hex()}-{span_id.hex()}-{int(self.sampled):02x}"


@lru_cache(10_000)
def task_identity(task_uuid: str, traceparent: str | None, share: float) -> TaskIdentity:
    """Return the identity of a task, in the trace in which it was submitted or in a trace of its own.

    The creator of the trace decided whether it is sampled. Tasks without one are sampled by their identifiers at the
    ratio `share`, from 0 to 1: all processes decide alike.
    """
    span_id = task_span(task_uuid)
    if traceparent is None:
        trace_id = bytes.fromhex(task_uuid.replace("-", ""))
        return TaskIdentity(trace_id, span_id, None, is_sampled(trace_id, share))
    caller = caller_of(traceparent)
    return TaskIdentity(caller.trace_id, span_id, caller.span_id, caller.sampled)


class Caller(NamedTuple):
    """Span of another application, as bytes. `sampled`: its trace is sampled."""

    trace_id: bytes
    span_id: bytes
    sampled: bool


def caller_of(traceparent: str) -> Caller:
    """Return the span that a traceparent names."""
    trace_id, span_id = bytes.fromhex(traceparent[3:35]), bytes.fromhex(traceparent[36:52])
    return Caller(trace_id, span_id, bool(int(traceparent[53:55], 16) & SAMPLED))


def attempt_traceparent(share: float, task_uuid: str, step_uuid: str, token: int, traceparent: str | None) -> str:
    """Return the trace context for the handler of an attempt: its requests become children of the attempt's span."""
    return task_identity(task_uuid, traceparent, share).traceparent_of(attempt_span(step_uuid, token))


def task_span(task_uuid: str) -> bytes:
    """Return the last half of the identifier, which contains its random part."""
    last = bytes.fromhex(task_uuid.replace("-", ""))[8:]
    return _hash(task_uuid) if last == NO_SPAN else last


def part_span(name: str, *whose: str | int) -> bytes:
    """Return the span id of an operation that happens once for this task, or this claim of a step."""
    return _hash("/".join([name, *map(str, whose)]))


@lru_cache(1000)
def attempt_span(step_uuid: str, token: int) -> bytes:
    """Return the span id of one claim of a step. No other claim has its token."""
    return _hash(f"{step_uuid}/{token}")


def is_sampled(trace_id: bytes, share: float) -> bool:
    """Return True if a trace is in this share of all traces."""
    return int.from_bytes(_hash(trace_id.hex())) < share * 2**64


def _hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()
