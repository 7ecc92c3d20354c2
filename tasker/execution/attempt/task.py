"""The asyncio task of an attempt."""

from __future__ import annotations

import asyncio
from typing import Any

from tasker.contracts.execution import Claim
from tasker.contracts.running import running


class AttemptTask(asyncio.Task[None]):
    """A task that remembers whose handler cancelled it."""

    cancelled_by: Claim | None = None
    """The claim of the handler that called `cancel` last; None where no handler did."""

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel the task, as `asyncio.Task.cancel` does."""
        self.cancelled_by = running.get()
        return super().cancel(msg)
