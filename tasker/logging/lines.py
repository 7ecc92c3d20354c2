"""Log lines about tasks: a phrase, then fields in the standard order; rare lines are throttled.

As text a line is the phrase followed by `key=value` pairs, with any logging configuration of the program; as JSON each
field is a key of its own (`tasker.logging.format`).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tasker.logging.trace_context import TraceContext

if TYPE_CHECKING:
    from tasker.handlers.claims import Claim

PERIOD_SECONDS = 60.0


class LogThrottle:
    """Counter of an event: the first is logged at once, later ones with the first event of the next period.

    `monotonic` is a clock in seconds. A component that stops logs the rest with `flush`.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._count = 0
        self._told: float | None = None

    def hit(self) -> bool:
        """Count the event and return whether to log now."""
        self._count += 1
        return self._told is None or self._monotonic() - self._told >= PERIOD_SECONDS

    def flush(self) -> int:
        """Return how often the event happened since the last log message, and begin a new period."""
        count, self._count, self._told = self._count, 0, self._monotonic()
        return count


TRACE = 5
"""Level below DEBUG, which `logging` itself lacks."""
logging.addLevelName(TRACE, "TRACE")
ORDER = (
    *("correlation_id", "task_uuid", "step_uuid", "namespace"),
    *("operation", "state", "status", "from_state", "to_state"),
    *("duration_ms", "count", "size"),
    *("error", "error_type", "context"),
)
"""Fields that come first, in this order: ids, state, quantities, errors. The others follow."""
_RANKS = {name: rank for rank, name in enumerate(ORDER)} | dict.fromkeys(("trace_id", "span_id"), len(ORDER) + 1)


class LogRecordLine(NamedTuple):
    """Message of a log record with fields; formatted only if it is written as text."""

    phrase: str
    fields: Mapping[str, Any]
    detail: str = ""
    """Text below the line: a traceback."""

    def __str__(self) -> str:
        """The phrase and its fields, but for a field that the phrase ends with (`Step claimed: step_uuid=`)."""
        below = f"\n{self.detail}" if self.detail else ""
        last = self.phrase.rpartition(" ")[2].partition("=")[0]
        return f"{self.phrase} {as_text({name: self.fields[name] for name in self.fields if name != last})}{below}"


def ids_of(claim: Claim) -> dict[str, Any]:
    """Return the fields that identify an attempt: ids of task and step, attempt number and trace context."""
    ids: dict[str, Any] = {
        "correlation_id": claim.correlation_id,
        "task_uuid": claim.task_uuid,
        "step_uuid": claim.step_uuid,
        "namespace": claim.namespace,
        "step_name": claim.name,
        "attempt": claim.attempt,
    }
    return ids | of_trace(claim.propagated_trace)


def ids_of_task(task_uuid: str, correlation_id: str, namespace: str, trace: TraceContext | None) -> dict[str, Any]:
    """Return the fields that identify a task; `trace` is the trace context of its submission."""
    ids = {"correlation_id": correlation_id, "task_uuid": task_uuid, "namespace": namespace}
    return ids | of_trace(trace)


def of_trace(place: TraceContext | None) -> dict[str, str]:
    return {} if place is None else {"trace_id": place.trace_id, "span_id": place.span_id}


def in_order(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields in the standard order."""
    return dict(sorted(fields.items(), key=_rank))


def _rank(field: tuple[str, Any]) -> int:
    return _RANKS.get(field[0], len(ORDER))


def as_text(fields: Mapping[str, Any]) -> str:
    """Return `key=value key=value`; a text with spaces or line breaks is quoted."""
    return " ".join([f"{name}={_shown(value)}" for name, value in fields.items()])


def _shown(value: Any) -> Any:
    return repr(value) if type(value) is str and (" " in value or not value.isprintable()) else value


def log_line(
    logger: logging.Logger,
    level: int,
    phrase: str,
    fields: Mapping[str, Any],
    *,
    detail: str = "",
    raised: bool = False,
) -> None:
    """Write a line; do nothing if the level is disabled.

    `detail` is the text below the line; with `raised` it is the exception that is being handled.
    """
    if logger.isEnabledFor(level):
        line, exception = LogRecordLine(phrase, in_order(fields), detail), sys.exc_info() if raised else None
        # `logger.log` would look up the caller in the code: a sixth of the cost of a line, of which there is one per
        # step
        logger.handle(logger.makeRecord(logger.name, level, "", 0, line, (), exception))
