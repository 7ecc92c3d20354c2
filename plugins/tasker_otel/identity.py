"""Who is who in a trace: identifiers that every process computes alike, so that none has to ask another one."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from tasker.contracts.dataclasses import dataclass

SAMPLED = 0x01
"""The flag of a traceparent that says that its trace is kept."""
NO_SPAN = bytes(8)


@dataclass(frozen=True, slots=True)
class TaskIdentity:
    """A task in its trace, as bytes. `parent_id` is the span of who submitted it; `sampled`: its spans are sent."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes | None
    sampled: bool

    def traceparent_of(self, span_id: bytes) -> str:
        """What a request carries that a span of this trace makes."""
        return f"00-{self.trace_id.hex()}-{span_id.hex()}-{int(self.sampled):02x}"


@lru_cache(10_000)
def task_identity(task_uuid: str, traceparent: str | None, share: float) -> TaskIdentity:
    """A task that was submitted at this place in a trace, or one that begins a trace of its own.

    Whoever began the trace has decided whether it is kept. Of tasks without one a share is, from 0 to 1, by their
    identifiers: all processes decide alike.
    """
    span_id = task_span(task_uuid)
    if traceparent is None:
        trace_id = bytes.fromhex(task_uuid.replace("-", ""))
        return TaskIdentity(trace_id, span_id, None, is_sampled(trace_id, share))
    caller = caller_of(traceparent)
    return TaskIdentity(caller.trace_id, span_id, caller.span_id, caller.sampled)


class Caller(NamedTuple):
    """A span that somebody else has made, as bytes. `sampled`: its trace is kept."""

    trace_id: bytes
    span_id: bytes
    sampled: bool


def caller_of(traceparent: str) -> Caller:
    """The span that a traceparent names."""
    trace_id, span_id = bytes.fromhex(traceparent[3:35]), bytes.fromhex(traceparent[36:52])
    return Caller(trace_id, span_id, bool(int(traceparent[53:55], 16) & SAMPLED))


def attempt_traceparent(share: float, task_uuid: str, step_uuid: str, token: int, traceparent: str | None) -> str:
    """What the handler of an attempt carries on, so that what it asks for is a child of the attempt's span."""
    return task_identity(task_uuid, traceparent, share).traceparent_of(attempt_span(step_uuid, token))


def task_span(task_uuid: str) -> bytes:
    """The last half of its identifier, which holds what is random in it."""
    last = bytes.fromhex(task_uuid.replace("-", ""))[8:]
    return _hash(task_uuid) if last == NO_SPAN else last


def part_span(name: str, *whose: str | int) -> bytes:
    """Of what is done once for this task, or this claim of a step."""
    return _hash("/".join([name, *map(str, whose)]))


@lru_cache(1000)
def attempt_span(step_uuid: str, token: int) -> bytes:
    """Of one claim of a step. No other claim has its token."""
    return _hash(f"{step_uuid}/{token}")


def is_sampled(trace_id: bytes, share: float) -> bool:
    """Whether a trace is among this share of all traces."""
    return int.from_bytes(_hash(trace_id.hex())) < share * 2**64


def _hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()
