"""The flag that stops one attempt, and what it then ends as."""

from __future__ import annotations

from collections.abc import Callable

from tasker.contracts.execution import Claim
from tasker.execution.attempt.values import AttemptCancelled, ClaimReleased, UnreportedEnd


class AttemptCancelFlag:
    """Stops one attempt: async handlers are cancelled, child processes killed, threads see `context.cancelled`.

    `set` belongs to the event loop's thread (from elsewhere: `loop.call_soon_threadsafe(flag.set)`); `is_set` may be
    called from any thread.
    """

    __slots__ = ("_end", "_reason", "_up", "wake")

    def __init__(self) -> None:
        self._end: type[UnreportedEnd] | None = None
        self._reason = ""
        self._up = False
        self.wake: Callable[[type[UnreportedEnd]], object] | None = None
        """Called by `set` with the end it was given; whoever runs the handler puts itself here meanwhile."""

    def is_set(self) -> bool:
        """True when the handler shall stop: it was told to, or its time is up."""
        return self._up

    def set(
        self, end: type[UnreportedEnd] = AttemptCancelled, reason: str = "told to stop while its handler ran"
    ) -> None:
        """Stop the attempt; it ends as `end` says (`AttemptCancelled`, `ClaimLost`, `ClaimReleased`). The first call
        decides."""
        if self._end is not None:
            return
        self._end, self._reason, self._up = end, reason, True
        if self.wake is not None:
            self.wake(end)

    def time_is_up(self) -> None:
        """Tell a handler that nobody waits for any more."""
        self._up = True

    def end_of(self, claim: Claim) -> UnreportedEnd | None:
        """How the attempt of this claim ends since it was told to stop; None while nobody told it."""
        return None if self._end is None else self._end(claim, self._reason)

    def may_save(self) -> bool:
        """False when the step is not ours any more. One that is to be released may still save its position."""
        return self._end is None or self._end is ClaimReleased
