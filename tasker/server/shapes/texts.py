"""Texts and headers that several routes share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, Field

from tasker.errors import UsageError
from tasker.logging.trace_context import TraceContext, accepted
from tasker.services.submission.input_keys import LONGEST_TENANT
from tasker.services.submission.starts import deadline_item
from tasker.template.durations import parse_duration
from tasker.template.names import MAX_PRIORITY, MIN_PRIORITY, PRIORITY_EXPECTED, PriorityName, parse_priority


def storable_text(value: str) -> str:
    """Return the text. Raises `ValueError` if it contains a NUL character or half a character (a lone surrogate)."""
    if "\0" in value:
        raise ValueError("holds a NUL character")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("holds half of a character (a lone surrogate)") from None
    return value


Name = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(storable_text)]
Text = Annotated[str, Field(max_length=1024), AfterValidator(storable_text)]


def _no_number(value: Any) -> Any:
    """Reject numbers, which pydantic would read as seconds since 1970: the description does not offer that."""
    try:
        float(value)
    except (TypeError, ValueError):
        return value
    raise ValueError("expected a date and time such as 2026-01-31T12:00:00Z, got a number")


def _in_utc(value: datetime) -> datetime:
    return value if value.tzinfo else value.replace(tzinfo=UTC)


Moment = Annotated[datetime, BeforeValidator(_no_number), AfterValidator(_in_utc)]
"""Time of a filter; without a zone it is in UTC."""


def _duration(value: str) -> str:
    parse_duration(value)
    return value


Duration = Annotated[str, AfterValidator(_duration), Field(examples=["5m"], max_length=40)]


def _deadline(value: str) -> str:
    try:
        deadline_item(value, None)
    except UsageError as error:
        raise ValueError(f"{error.message.removeprefix('deadline: ')} ({error.hint})") from None
    return value


def _priority(value: Any) -> Any:
    if parse_priority(value) is None:
        raise ValueError(PRIORITY_EXPECTED)
    return value


def _printable(value: str) -> str:
    if not value.isprintable():
        raise ValueError("expected printable characters")
    return value


Tenant = Annotated[
    str, Field(min_length=1, max_length=LONGEST_TENANT), AfterValidator(storable_text), AfterValidator(_printable)
]
Deadline = Annotated[str, AfterValidator(_deadline), Field(examples=["3d", "2026-01-31T18:00:00Z"], max_length=40)]
Priority = Annotated[Annotated[int, Field(ge=MIN_PRIORITY, le=MAX_PRIORITY)] | PriorityName, BeforeValidator(_priority)]
AwareMoment = Annotated[AwareDatetime, BeforeValidator(_no_number)]


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
