"""Which step is being run here: set around each call of a handler, read by whoever writes its log lines."""

from __future__ import annotations

from contextvars import ContextVar

from tasker.contracts.execution import Claim

running: ContextVar[Claim | None] = ContextVar("tasker_running_step", default=None)
"""The claim of the step whose handler is running in this context: in its task, thread or process."""
