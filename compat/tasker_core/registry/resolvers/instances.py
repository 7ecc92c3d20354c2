"""Making a handler of its class."""

from __future__ import annotations

import logging
from typing import Any

from tasker.registry import HandlerDefinition
from tasker_core.step_handler.entries import wants_config

log = logging.getLogger("tasker.registry")


def instance(cls: type, definition: HandlerDefinition) -> Any | None:
    """A handler, made with `config` (the step's `initialization`) where its class wants that; None when that fails."""
    try:
        return cls(config=definition.initialization or {}) if wants_config(cls) else cls()
    except Exception as error:
        log.warning("%s cannot be made: %s: %s", cls.__qualname__, type(error).__name__, error)
        return None
