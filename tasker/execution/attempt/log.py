"""Log lines about attempts, as `event key=value ...` (C-112)."""

from __future__ import annotations

import logging

_logger = logging.getLogger("tasker.execution")


def info(event: str, **fields: object) -> None:
    """Something that happens in a healthy system."""
    _write(logging.INFO, event, fields)


def warning(event: str, **fields: object) -> None:
    """Something that somebody should look at."""
    _write(logging.WARNING, event, fields)


def _write(level: int, event: str, fields: dict[str, object]) -> None:
    if _logger.isEnabledFor(level):
        _logger.log(level, "%s %s", event, " ".join(f"{key}={value}" for key, value in fields.items()))
