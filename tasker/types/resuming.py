"""What a handler that goes on from a checkpoint reads of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tasker.contracts.readable import yes_or_no


class Resuming:
    """The part of a `StepContext` that takes its checkpoint apart."""

    if TYPE_CHECKING:

        @property
        def checkpoint(self) -> dict[str, Any] | None:
            """What the last `checkpoint_yield` of this step stored."""
            ...

    @property
    def checkpoint_cursor(self) -> Any | None:
        """Where the last checkpoint stopped."""
        return (self.checkpoint or {}).get("cursor")

    @property
    def checkpoint_items_processed(self) -> int:
        """How many items were done at the last checkpoint; 0 without one."""
        return (self.checkpoint or {}).get("items_processed") or 0

    @property
    def accumulated_results(self) -> dict[str, Any] | None:
        """What the last checkpoint carried along."""
        return (self.checkpoint or {}).get("accumulated_results")

    @yes_or_no
    def has_checkpoint(self) -> bool:
        """True when an earlier run of this step yielded."""
        return self.checkpoint is not None
