"""Lines of the journal for each event: ids first, then the event, times, errors, the rest."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from tasker.dataclasses import dataclass
from tasker.plugins.hook_arguments import AttemptEnded, AttemptStarted, SweepRepaired


@dataclass(frozen=True, slots=True)
class Initialized:
    """Task that this process has created."""

    task_uuid: str
    namespace: str
    template: str


ORDER = (
    "correlation_id",
    "task_uuid",
    "step_uuid",
    "namespace",
    "template",
    "step_name",
    "state",
    "duration_ms",
    "error",
    "error_type",
)
"""The keys that come first, in this order; the others follow."""
LEVELS = {"failed": "WARNING", "lost": "WARNING"}


def line(message: str, value: Any, now: int | None = None) -> dict[str, Any]:
    """Return one line of the journal. `now` is its timestamp, in milliseconds since 1970; None: the current time."""
    entry = {
        "timestamp": _moment(time.time_ns() // 1_000_000 if now is None else now),
        "level": LEVELS.get(getattr(value, "end", ""), "INFO"),
        "message": message,
    }
    if isinstance(value, AttemptEnded):
        entry.update(_attempt(value.attempt, _end(value)))
    elif isinstance(value, AttemptStarted):
        entry.update(_attempt(value, {}))
    else:
        rest = _fields(value)
        entry.update({key: rest.pop(key) for key in ORDER if key in rest})
        entry.update(rest)
    return entry


def _moment(now: int) -> str:
    return f"{_second(now // 1000)}.{now % 1000:03}+00:00"


@lru_cache(4)
def _second(number: int) -> str:
    """Return the date and time, cached because the lines of a second share them."""
    return datetime.fromtimestamp(number, UTC).isoformat()[:19]


def _attempt(attempt: AttemptStarted, end: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an attempt.

    Written out, because there is one for each attempt and this takes a third of the time. Its times are those of the
    line.
    """
    return {
        "correlation_id": attempt.correlation_id,
        "task_uuid": attempt.task_uuid,
        "step_uuid": attempt.step_uuid,
        "namespace": attempt.namespace,
        "template": attempt.template,
        "step_name": attempt.step,
        **end,
        "retry_count": attempt.attempt - 1,
        "handler": attempt.handler,
        "max_retries": attempt.max_attempts - 1,
        "token": attempt.token,
        "worker": attempt.worker,
    }


def _end(ended: AttemptEnded) -> dict[str, Any]:
    fields: dict[str, Any] = {"state": ended.end}
    if ended.duration_ms is not None:
        fields["duration_ms"] = ended.duration_ms
    if ended.error_message is not None:
        fields["error"] = ended.error_message
    if ended.error_type is not None:
        fields["error_type"] = ended.error_type
    if ended.retryable is not None:
        fields["retryable"] = ended.retryable
    return fields


def _fields(value: Any) -> dict[str, Any]:
    if isinstance(value, SweepRepaired):
        return dict(value.counts)
    return {name: getattr(value, name) for name in value.__dataclass_fields__}  # takes a tenth of the time of `asdict`
