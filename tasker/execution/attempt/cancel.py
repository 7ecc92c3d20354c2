"""The flag that stops one attempt, and the outcome that the attempt then has."""

from __future__ import annotations

from collections.abc import Callable

from tasker.contracts.execution import Claim
from tasker.execution.attempt.values import AttemptCancelled, ClaimReleased, UnreportedEnd


class AttemptCancelFlag:
    """Flag that stops one attempt.

    Async handlers are cancelled, child processes killed, threads see `context.cancelled`. Call `set` on the event
    loop's thread only (from other threads: `loop.call_soon_threadsafe(flag.set)`); `is_set` may be called from any
    thread.
    """

    __slots__ = ("_end", "_reason", "_up", "wake")

    def __init__(self) -> None:
        self._end: type[UnreportedEnd] | None = None
        self._reason = ""
        self._up = False
        self.wake: Callable[[type[UnreportedEnd]], object] | None = None
        """Callback that `set` calls with its end; the code that runs the handler installs it meanwhile."""

    def is_set(self) -> bool:
        """Return True when the handler must stop: it was cancelled, or its time is up."""
        return self._up

    def set(
        self, end: type[UnreportedEnd] = AttemptCancelled, reason: str = "told to stop while its handler ran"
    ) -> None:
        """Stop the attempt, which ends as `end` (`AttemptCancelled`, `ClaimLost` or `ClaimReleased`).

        The first call decides; later calls have no effect.
        """
        if self._end is not None:
            return
        self._end, self._reason, self._up = end, reason, True
        if self.wake is not None:
            self.wake(end)

    def time_is_up(self) -> None:
        """Signal the handler to stop because its attempt has timed out."""
        self._up = True

    def end_of(self, claim: Claim) -> UnreportedEnd | None:
        """Return the outcome of this claim's attempt after `set`, or None if `set` was not called."""
        return None if self._end is None else self._end(claim, self._reason)

    def may_save(self) -> bool:
        """Return False when another worker may have the step. A step to be released may still save its position."""
        return self._end is None or self._end is ClaimReleased
