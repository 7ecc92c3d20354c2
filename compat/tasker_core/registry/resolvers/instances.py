"""Creation of handlers from their classes."""

from __future__ import annotations

import logging
from typing import Any

from tasker.handlers.registry.resolver import HandlerDefinition
from tasker_core.step_handler.entries import wants_config

log = logging.getLogger("tasker.registry")


def instance(cls: type, definition: HandlerDefinition) -> Any | None:
    """Create a handler, with `config` (the step's `initialization`) if its class requires it; None on an error."""
    try:
        return cls(config=definition.initialization or {}) if wants_config(cls) else cls()
    except Exception as error:
        log.warning("%s cannot be made: %s: %s", cls.__qualname__, type(error).__name__, error)
        return None
