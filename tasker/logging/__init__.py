"""Log functions for handlers, with fields."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tasker.logging.lines import TRACE as TRACE  # re-exported

if TYPE_CHECKING:
    from tasker.handlers.reporting import LogContext

_logger = logging.getLogger("tasker.handlers")


def log_error(message: str, fields: dict[str, Any] | LogContext | None = None) -> None:
    """Log a failure that needs attention."""
    _log(logging.ERROR, message, fields)


def log_warn(message: str, fields: dict[str, Any] | LogContext | None = None) -> None:
    """Log an anomaly that did not stop the work."""
    _log(logging.WARNING, message, fields)


def log_info(message: str, fields: dict[str, Any] | LogContext | None = None) -> None:
    """Log a normal event."""
    _log(logging.INFO, message, fields)


def log_debug(message: str, fields: dict[str, Any] | LogContext | None = None) -> None:
    """Log details for debugging."""
    _log(logging.DEBUG, message, fields)


def log_trace(message: str, fields: dict[str, Any] | LogContext | None = None) -> None:
    """Log the finest details, at a level below debug."""
    _log(TRACE, message, fields)


def _log(level: int, message: str, fields: Mapping[str, Any] | LogContext | None) -> None:
    """Log `message key=value ...`; the fields are also set as `record.fields` for structured output."""
    if not _logger.isEnabledFor(level):
        return
    log_fields = (
        dict(fields or {}) if fields is None or isinstance(fields, Mapping) else fields.model_dump(exclude_none=True)
    )
    line = " ".join([message, *(f"{key}={_text(value)}" for key, value in log_fields.items())])
    _logger.log(level, "%s", line, extra={"fields": log_fields}, stacklevel=3)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
