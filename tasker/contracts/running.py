"""Which step is being run here: set around each call of a handler, read by whoever writes its log lines."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from tasker.contracts.execution import Claim

running: ContextVar[Claim | None] = ContextVar("tasker_running_step", default=None)
"""The claim of the step whose handler is running in this context: in its task, thread or process."""

covering: ContextVar[Callable[[Any], Any] | None] = ContextVar("tasker_covering", default=None)
"""Makes texts and plain data from what that handler tells, without the sensitive values that its step knows."""
