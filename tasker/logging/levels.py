"""Log levels from `TASKER_LOG_LEVEL`: one default level, and levels of single loggers.

`info,tasker.orchestration=debug,my_project=warning`: a logger uses the level of its nearest named ancestor.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from tasker.errors import UsageError
from tasker.logging.lines import TRACE

LEVEL_VARIABLE = "TASKER_LOG_LEVEL"
LEVELS = {
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
}
SHORT = {"WARN": "WARNING"}
ROOT = "root"
"""Name of the root logger in `logging`; its level is the one written without a name."""
_OF_PARTS = {
    "tasker_orchestration": "api decisions engine orchestration submission web",
    "tasker_worker": "domain_events event_bridge execution failures registry resources worker",
    "tasker_shared": "breakers chaos configuration database db embedded events messaging plugins process templates",
}
PARTS = {part: tuple(f"tasker.{name}" for name in names.split()) for part, names in _OF_PARTS.items()}
"""Loggers behind the published names of the system's parts."""
_LOGGER = re.compile(r"[\w-]+(\.[\w-]+)*")


class Levels(NamedTuple):
    """Default level and, in `of`, the levels of single loggers; as numbers of `logging`."""

    default: int = logging.INFO
    of: Mapping[str, int] = {}

    def __str__(self) -> str:
        """Return the levels in the form of the variable."""
        logger_levels = (f"{name}={logging.getLevelName(level)}" for name, level in self.of.items())
        return ",".join([logging.getLevelName(self.default), *logger_levels])


class ShownFilter(logging.Filter):
    """Filter for a logging handler that applies `levels`: loggers may create records below them for `capture_logs`."""

    def __init__(self, levels: Levels) -> None:
        super().__init__()
        self.levels = levels
        self._of = {**levels.of, "": levels.default}

    def filter(self, record: logging.LogRecord) -> bool:
        name = record.name
        while name not in self._of:
            name = name.rpartition(".")[0]
        return record.levelno >= self._of[name]


def levels_named(environ: Mapping[str, str] = os.environ) -> Levels | None:
    """Return the levels in `TASKER_LOG_LEVEL`; None if it is not set. Raises `UsageError` for an invalid level."""
    text = environ.get(LEVEL_VARIABLE, "").strip()
    if not text:
        return None
    levels, parts = dict[str, int](), text.split(",")
    for number, part in enumerate(parts, 1):
        where = f"{LEVEL_VARIABLE} is {text!r}" + (f", part {number}" if len(parts) > 1 else "")
        name, level = _parsed(part.strip(), where)
        if name in levels:
            expected = "one level for all others" if name == ROOT else "each logger once"
            again = f"{part.strip()!r} as well" if name == ROOT else f"{name!r} again"
            raise UsageError(f"{where}: expected {expected}, found {again}", hint="leave one of them")
        levels[name] = level
    return Levels(levels.pop(ROOT, logging.INFO), _of_loggers(levels))


def _parsed(part: str, where: str) -> tuple[str, int]:
    name, equals, level = (piece.strip() for piece in part.rpartition("="))
    if equals and not _LOGGER.fullmatch(name):
        hint = "it has dots between its parts, as in my_project.handlers=debug; between two loggers there is a comma"
        raise UsageError(f"{where}: expected the name of a logger before '=', found {name!r}", hint=hint)
    upper = level.upper()
    if (number := LEVELS.get(SHORT.get(upper, upper))) is None:
        expected = f"a level behind {f'{name}='!r}" if equals else "a level or LOGGER=LEVEL"
        raise UsageError(f"{where}: expected {expected}, found {level!r}", hint=_hint(upper, part))
    return name or ROOT, number


def _hint(level: str, part: str) -> str:
    from difflib import get_close_matches  # needed only for errors

    near = get_close_matches(level, LEVELS, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    return f"{meant}levels are {', '.join(LEVELS)}" if part else "take out the comma, or write a level there"


def _of_loggers(levels: Mapping[str, int]) -> dict[str, int]:
    """Replace part names by their loggers; a logger that is named itself overrides its part."""
    of_parts = {name: level for part, level in levels.items() for name in PARTS.get(part, ())}
    return {**of_parts, **{name: level for name, level in levels.items() if name not in PARTS}}
