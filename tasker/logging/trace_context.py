"""W3C Trace Context of a task: accepted at submission, stored with the task and propagated."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:(?<!^00-.{52})-.*)?"
)
"""Later versions may append fields after a hyphen; version 00 has none."""
TRACESTATE = re.compile(r"[\x20-\x7e]{1,512}")
EXPECTED = "00-, the trace in 32 hexadecimal digits, -, the span in 16, -, and the flags in 2, in lower case"


class TraceContext(NamedTuple):
    """Valid trace context. Created by `checked` or `accepted`, which validate the texts."""

    traceparent: str
    tracestate: str | None = None

    @property
    def trace_id(self) -> str:
        """Trace id, 32 hexadecimal digits."""
        return self.traceparent[3:35]

    @property
    def span_id(self) -> str:
        """Parent span id, 16 hexadecimal digits."""
        return self.traceparent[36:52]

    def headers(self) -> dict[str, str]:
        """Return the headers that propagate the context in a request."""
        headers = {"traceparent": self.traceparent}
        return {**headers, "tracestate": self.tracestate} if self.tracestate else headers


TraceOf: TypeAlias = Callable[[str, str, int, TraceContext | None], TraceContext | None]
"""(task, step, token, trace context of the submission) -> trace context for the handler."""


def checked(traceparent: Any, tracestate: Any) -> TraceContext | None:
    """Validate a caller's trace context; None if there is none. Raises `ValueError` that describes the problem."""
    if traceparent is None and tracestate is None:
        return None
    if traceparent is None:
        raise ValueError("tracestate: got one without a traceparent; pass both")
    if not isinstance(traceparent, str) or not TRACEPARENT.fullmatch(traceparent):
        raise ValueError(f"traceparent: expected {EXPECTED}; found {traceparent!r:.80}")
    if tracestate is not None and not (isinstance(tracestate, str) and TRACESTATE.fullmatch(tracestate)):
        raise ValueError(f"tracestate: expected 1 to 512 printable characters of ASCII, found {tracestate!r:.80}")
    return TraceContext(traceparent, tracestate)


def accepted(traceparent: str | None, tracestate: str | None) -> TraceContext | None:
    """Return the trace context of a request's headers. Invalid headers are ignored, as the standard requires."""
    state = tracestate if tracestate and TRACESTATE.fullmatch(tracestate) else None
    known = traceparent is not None and TRACEPARENT.fullmatch(traceparent)
    return TraceContext(traceparent, state) if traceparent and known else None
