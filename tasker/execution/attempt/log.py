"""Log lines about attempts."""

from __future__ import annotations

import logging

from tasker.contracts.execution import Claim
from tasker.log_lines import ids_of, log_line

_logger = logging.getLogger("tasker.execution")


def info(event: str, claim: Claim, **fields: object) -> None:
    _write(logging.INFO, event, claim, fields)


def warning(event: str, claim: Claim | None, **fields: object) -> None:
    _write(logging.WARNING, event, claim, fields)


def _write(level: int, event: str, claim: Claim | None, fields: dict[str, object]) -> None:
    if _logger.isEnabledFor(level):
        log_line(_logger, level, event, {**(ids_of(claim) if claim else {}), **fields})
