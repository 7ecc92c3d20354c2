"""What the journal says of each event: ids first, then what happened, times, errors, the rest (E-109 .. E-113)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tasker.hookspecs import AttemptEnded, AttemptStarted, Repaired


@dataclass(frozen=True, slots=True)
class Initialized:
    """A task that this process has created."""

    task_uuid: str
    namespace: str
    template: str


ORDER = (
    "correlation_id",
    "task_uuid",
    "step_uuid",
    "namespace",
    "template",
    "step",
    "state",
    "duration_ms",
    "error",
    "error_type",
)
"""The keys that come first, in this order; the others follow."""
LEFT_OUT = ("attempt", "started_at", "traceparent", "tracestate")
"""Of an attempt: told in another form, or by the time of the line."""
LEVELS = {"failed": "WARNING", "lost": "WARNING"}


def line(message: str, value: Any, now: datetime | None = None) -> dict[str, Any]:
    """One line of the journal. `now` is the time that it carries, with a zone; None: the clock's."""
    moment = (now or datetime.now(UTC)).isoformat(timespec="milliseconds")
    head = {"timestamp": moment, "level": LEVELS.get(getattr(value, "end", ""), "INFO"), "message": message}
    found = _fields(value)
    first = {key: found.pop(key) for key in ORDER if key in found}
    return {**head, **first, **found}


def _fields(value: Any) -> dict[str, Any]:
    if isinstance(value, AttemptStarted):
        return _attempt(value)
    if isinstance(value, AttemptEnded):
        told = {"state": value.end, "duration_ms": value.duration_ms, "error": value.error_message}
        told |= {"error_type": value.error_type, "retryable": value.retryable}
        return {**_attempt(value.attempt), **{key: each for key, each in told.items() if each is not None}}
    if isinstance(value, Repaired):
        return dict(value.counts)
    return {name: getattr(value, name) for name in value.__dataclass_fields__}  # a tenth of the time of `asdict`


def _attempt(attempt: AttemptStarted) -> dict[str, Any]:
    found: dict[str, Any] = {"retry_count": attempt.attempt - 1}
    for name in attempt.__dataclass_fields__:
        if name not in LEFT_OUT:
            found[name] = getattr(attempt, name)
    return found
