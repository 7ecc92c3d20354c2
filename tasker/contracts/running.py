"""Context variables of the running step, set around each handler call and read by the log formatter."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasker.contracts.execution import Claim

running: ContextVar[Claim | None] = ContextVar("tasker_running_step", default=None)
"""Claim of the step whose handler runs in this context: in its task, thread or process."""

covering: ContextVar[Callable[[Any], Any] | None] = ContextVar("tasker_covering", default=None)
"""Redactor for texts and plain data of the running handler: removes the sensitive values known to its step."""
