"""What the journal says of each event: ids first, then what happened, times, errors, the rest (E-109 .. E-113)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
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
_FIRST = tuple(name for name in ORDER if name in AttemptStarted.__dataclass_fields__)
_REST = tuple(name for name in AttemptStarted.__dataclass_fields__ if name not in (*ORDER, *LEFT_OUT))
_first, _rest = attrgetter(*_FIRST), attrgetter(*_REST)
LEVELS = {"failed": "WARNING", "lost": "WARNING"}


def line(message: str, value: Any, now: datetime | None = None) -> dict[str, Any]:
    """One line of the journal. `now` is the time that it carries, with a zone; None: the clock's."""
    moment = (now or datetime.now(UTC)).isoformat(timespec="milliseconds")
    head = {"timestamp": moment, "level": LEVELS.get(getattr(value, "end", ""), "INFO"), "message": message}
    if isinstance(value, AttemptEnded):
        return {**head, **_attempt(value.attempt, _end(value))}
    if isinstance(value, AttemptStarted):
        return {**head, **_attempt(value, {})}
    found = _fields(value)
    first = {key: found.pop(key) for key in ORDER if key in found}
    return {**head, **first, **found}


def _attempt(attempt: AttemptStarted, end: dict[str, Any]) -> dict[str, Any]:
    """There is one for each attempt: the keys are in their order from the beginning."""
    found = dict(zip(_FIRST, _first(attempt), strict=True))
    found.update(end)
    found["retry_count"] = attempt.attempt - 1
    found.update(zip(_REST, _rest(attempt), strict=True))
    return found


def _end(ended: AttemptEnded) -> dict[str, Any]:
    told: dict[str, Any] = {"state": ended.end}
    if ended.duration_ms is not None:
        told["duration_ms"] = ended.duration_ms
    if ended.error_message is not None:
        told["error"] = ended.error_message
    if ended.error_type is not None:
        told["error_type"] = ended.error_type
    if ended.retryable is not None:
        told["retryable"] = ended.retryable
    return told


def _fields(value: Any) -> dict[str, Any]:
    if isinstance(value, Repaired):
        return dict(value.counts)
    return {name: getattr(value, name) for name in value.__dataclass_fields__}  # a tenth of the time of `asdict`
