"""Headers of requests that create tasks."""

from __future__ import annotations

from pydantic import BaseModel, Field

from tasker.contracts.tracing import TraceContext, accepted


class TraceHeaders(BaseModel):
    """Trace context of the caller; invalid headers are ignored, as the standard requires."""

    traceparent: str | None = Field(None, description="W3C Trace Context, stored with the task.")
    tracestate: str | None = Field(None, description="What the tracing systems on the way have added.")

    @property
    def context(self) -> TraceContext | None:
        """Trace context, or None without a valid one."""
        return accepted(self.traceparent, self.tracestate)


class SubmissionHeaders(TraceHeaders):
    """Headers of a request for one task."""

    idempotency_key: str | None = Field(
        None, min_length=1, max_length=255, description="The same as `idempotency_key` in the body."
    )
