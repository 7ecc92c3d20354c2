"""The checkpoint of a step, as its handler reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tasker.handlers.readable import yes_or_no


class Resuming:
    """Part of `StepContext` that reads the checkpoint."""

    if TYPE_CHECKING:

        @property
        def checkpoint(self) -> dict[str, Any] | None:
            """Data that the last `checkpoint_yield` of this step stored; None without one."""
            ...

    @property
    def checkpoint_cursor(self) -> Any | None:
        """Position of the last checkpoint; None without one."""
        return (self.checkpoint or {}).get("cursor")

    @property
    def checkpoint_items_processed(self) -> int:
        """Number of items processed at the last checkpoint; 0 without one."""
        return (self.checkpoint or {}).get("items_processed") or 0

    @property
    def accumulated_results(self) -> dict[str, Any] | None:
        """Results stored with the last checkpoint; None without any."""
        return (self.checkpoint or {}).get("accumulated_results")

    @yes_or_no
    def has_checkpoint(self) -> bool:
        """True if an earlier run of this step stored a checkpoint."""
        return self.checkpoint is not None
