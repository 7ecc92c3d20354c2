"""Template settings of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.app.configured.unset import is_set

if TYPE_CHECKING:
    from tasker.settings.model import Settings


def template_environment(settings: Settings) -> str | None:
    """Return the environment whose overrides apply to templates, or None if none is set explicitly."""
    execution = settings.common.execution
    return execution.environment if is_set(execution, "environment") else None
